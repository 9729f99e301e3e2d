"""Sentences the voice is measured on; none of them is ever trained on (shards.py excludes them)."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

NATURAL = """
Hello and welcome to the little talking machine.
Thank you very much, it is nice to be here.
What would you like to eat this evening?
I would like some fish with rice and a glass of wine.
The weather is cold today, so please bring a warm coat.
My sister lives in a small town near the sea.
Can you tell me the way to the train station?
Go down this street and turn left at the church.
We had a wonderful time at the party last night.
The children are playing in the garden behind the house.
How much does this red shirt cost?
I forgot my keys on the kitchen table again.
She wants to become a doctor when she is older.
They walked along the river until it was dark.
Do you remember the name of that old movie?
No, but my brother has seen it many times.
The bus was late because of the heavy snow.
Please open the window and turn off the light.
He bought a new computer for his office.
It is important to drink enough water every day.
Our teacher told us a very funny story.
I am sorry, I did not hear the question.
The cat is sleeping under the bed.
Let us meet at noon in front of the hotel.
You should read this book, it is really good.
There are seven days in a week.
I think we need a better plan for tomorrow.
Someone left a message for you on the phone.
The music was so loud that nobody could sleep.
Good night, I will see you in the morning.
My father worked in that building for twenty years.
Did you hear what happened at school today?
She put the money in a box and closed it.
We can talk about it later if you want.
The first time I saw him, he was only a boy.
Nobody knows where the old man came from.
You don't have to answer that question right now.
They are going to build a new bridge over the river.
I'm not sure that this is the right house.
What are you going to do with all that paper?
The dog ran across the field and into the woods.
He said that he would call me on Friday.
If it rains tomorrow, we will stay at home.
This is the best coffee I have ever had.
Where did you find such a beautiful dress?
The doctor told her to rest for a few days.
Everybody in the room was looking at me.
It takes about two hours to drive to the city.
I can't believe that you said that to your mother.
The plane will land in ten minutes.
Could you please speak a little more slowly?
We lost the game, but we had a lot of fun.
His wife makes the best bread in the village.
Do you want to come with us to the beach?
The government changed the law last year.
There was a big fire in the center of town.
She doesn't like to talk about her family.
I have been waiting here for almost an hour.
The boy gave his little sister a piece of cake.
That was the longest day of my life.
Who is going to take care of the baby?
You can leave your bag next to the door.
He never told anyone about his secret.
The people in this country work very hard.
I need to find a job before the end of the month.
Are you still angry with me?
The moon is very bright tonight.
We should have left earlier this morning.
It's too late to change your mind now.
The police are looking for a man in a black hat.
My phone does not work in this building.
Would you mind if I sat down here?
They say that time heals everything.
The young woman smiled and shook her head.
Let me show you something interesting.
He opened the letter and read it twice.
I don't understand what you mean by that.
The store on the corner sells fresh fruit.
Have you ever been to the other side of the world?
She was too tired to cook dinner.
The war was over, and the soldiers went home.
You have to be careful when you cross the road.
There is nothing wrong with asking for help.
We will never forget what you did for us.
The water in the lake is clear and cold.
How long have you been living here?
I was born in a house on top of a hill.
He plays the piano better than anyone I know.
The meeting will start at nine in the morning.
Why don't you ask your friend to help you?
All the lights went out at the same time.
It was a dark night, and the wind was strong.
My grandmother used to tell us stories by the fire.
The team played well, but they did not win.
Please write your name at the top of the page.
She looked out of the window and saw the rain.
I would rather stay here with you.
The price of food is higher than last year.
Don't be afraid, the dog is very friendly.
Thanks for coming, and have a good trip.
""".strip().splitlines()

# What people say every day, which takes more than common words: names, food, work, travel, things.
EVERYDAY = """
The babysitter canceled, so we missed the opera.
Could you slice the cucumbers for the salad?
Our basement flooded during the storm last weekend.
I left my sunglasses on the dashboard of the taxi.
She ordered a cheeseburger and a chocolate milkshake.
The electrician installed a smoke detector in the hallway.
My grandson collects stamps and ancient coins.
We need more detergent for the washing machine.
The ferry to the island departs at half past eleven.
Patrick twisted his knee on the tennis court.
Have you renewed your passport for the trip to Japan?
The waitress recommended the grilled salmon with asparagus.
I accidentally deleted the photographs from our honeymoon.
The squirrels stole all the walnuts from the porch.
Please staple the receipts to the expense report.
Her boyfriend works as a chef in a seafood restaurant.
The stadium was packed for the championship final.
My backpack has a broken zipper.
Do you prefer jogging in the park or lifting weights?
The veterinarian gave our kitten a vaccine.
Olivia painted the nursery yellow and turquoise.
The highway is closed because of an avalanche.
I usually listen to podcasts while I iron my shirts.
The hotel lobby smells like lavender.
Can we postpone the interview until Tuesday?
He burned the pancakes and blamed the frying pan.
Our neighbors in the apartment upstairs are incredibly noisy.
The pharmacist explained the side effects of the antibiotics.
We rented a canoe and paddled across the lagoon.
The detective followed the suspect into an abandoned warehouse.
My roommate snores like a chainsaw.
There are fresh blueberries and yogurt in the refrigerator.
The orchestra tuned their violins before the rehearsal.
Jonathan got a scholarship to study economics in London.
The recipe says to simmer the sauce for twenty minutes.
I can't find the remote control underneath these cushions.
She wore a velvet dress and silver earrings to the gala.
The toddler is afraid of thunder and balloons.
Your subscription will automatically renew in November.
We picked raspberries and made several jars of jam.
The lifeguard blew his whistle at the swimmers.
Is the aquarium open on public holidays?
Uncle Raymond repairs antique clocks in his garage.
The committee rejected the proposal to expand the parking lot.
I need batteries for the flashlight and the thermostat.
The penguins at the zoo are absolutely adorable.
Could I exchange these trousers for a larger size?
The earthquake cracked the ceiling of the cathedral.
My supervisor approved my vacation request this morning.
Emily practices the clarinet for an hour every afternoon.
The carpenter sanded the wooden staircase.
Don't forget sunscreen, the ultraviolet index is extremely high.
The bakery around the corner sells excellent croissants.
They celebrated their twentieth anniversary in Hawaii.
The surgeon operated on his shoulder for six hours.
Put the dirty laundry in the plastic basket.
Our internet connection is terrible during video calls.
The magician pulled a pigeon out of his sleeve.
I applied for a mortgage at the local bank.
The twins dressed up as pirates for Halloween.
She sprinkled parmesan cheese over the spaghetti.
The train conductor apologized for the inconvenience.
My allergies are always worse in April.
We spotted a moose and two raccoons near the campsite.
The tailor shortened the sleeves of my jacket.
Did Christopher invite his colleagues to the barbecue?
The documentary about volcanoes was fascinating.
I squeezed a lemon into my herbal tea.
The hurricane destroyed dozens of mobile homes in Florida.
Turn down the radiator, it's boiling in this classroom.
The goalkeeper caught the ball with one hand.
Natalie majored in psychology and minored in French.
The toaster sparked and tripped the circuit breaker.
We wandered through narrow alleys in Barcelona.
The optician says I need stronger lenses.
He was embarrassed because his stomach growled.
The gardener trimmed the hedges and raked the leaves.
Save the document before you unplug the computer.
Her sculpture won first prize at the exhibition.
The cafeteria serves vegetarian lasagna on Mondays.
I twisted the lid, but the pickle jar won't open.
The pilot announced some turbulence over the Atlantic.
My daughter has a rehearsal for her ballet recital.
The suspect escaped on a stolen motorcycle.
We stayed in a cozy cabin with a fireplace.
The customs officer inspected every suitcase.
Benjamin swallowed a coin when he was a toddler.
The elevator music is driving me crazy.
Please refill the stapler and the coffee machine.
The vineyard offers wine tasting on Saturdays.
A mosquito bit me on the elbow.
The principal congratulated the graduating students.
I marinated the chicken in soy sauce and garlic.
The crosswalk near the kindergarten needs a traffic light.
Stephanie lost her luggage at the airport in Frankfurt.
The microwave beeped, your oatmeal is ready.
There is a delicious smell of cinnamon in the kitchen.
The babies giggled at the fluffy hamster.
Our accountant will prepare the tax return in February.
The skateboard rolled under the ambulance.
I prefer handwritten postcards to text messages.
The goldfish tank needs a new filter.
We admired the sunset from the rooftop terrace.
The journalist interviewed the mayor about pollution.
Somebody scratched the bumper of my pickup truck.
My grandmother knits scarves and woolen socks.
The gymnast landed perfectly on the mattress.
Would you like mustard or ketchup on your sausage?
The landlady collects the rent on the first of the month.
The library fine was seventy-five cents.
Brandon memorized the entire poem for the audition.
The dolphins leaped beside our sailboat.
Wash the spinach and chop the onions, please.
A helicopter circled above the burning skyscraper.
The novel was translated into Portuguese and Korean.
I sneezed during the most dramatic scene of the ballet.
Their dishwasher leaks whenever they use it.
The astronauts returned from the space station on Wednesday.
You should moisturize your elbows in the winter.
The tournament ended with a surprising victory for Canada.
""".strip().splitlines()

CARRIERS = """
The word {} is on the list.
She said {} and smiled.
I wrote {} on the board.
Can you spell {} for me?
He asked what {} means.
We read about {} last night.
Do you remember the word {}?
They talked about {} all day.
""".strip().splitlines()

TEMPLATE_SEED, RARE_SEED, DIALOGUE_SEED, LENGTH_SEED = 4242, 2026, 6, 40


@lru_cache
def template(count: int = 100) -> tuple[str, ...]:
    """`count` sentences of the training grammar, drawn from a seed training never uses."""
    from training.voice.corpus.grammar import sentence

    r = Random(TEMPLATE_SEED)
    found: list[str] = []
    while len(found) < count:
        candidate = sentence(r)
        if len(candidate) <= 70:
            found.append(candidate)
    return tuple(found)


@lru_cache
def rare_words(count: int = 2000) -> tuple[str, ...]:
    """`count` English words of frequency rank 2,000 to 20,000, never used in training."""
    from training.voice.corpus.natural import ranked_words
    from training.voice.corpus.text import own_words, plain

    used = set(own_words()) | set(plain(" ".join((*NATURAL, *template()))))
    pool = [w for w in ranked_words(20000)[2000:] if w not in used]
    return tuple(Random(RARE_SEED).sample(pool, count))


@lru_cache
def rare(words: int = 5) -> tuple[str, ...]:
    """The rare words as lines of five, in no order that helps a recogniser."""
    found = rare_words()
    return tuple(
        " ".join(found[k : k + words]).capitalize() + "." for k in range(0, len(found), words)
    )


@lru_cache
def rare_word_sentences() -> tuple[str, ...]:
    """Every rare word in an everyday sentence, in the order of `rare_words`."""
    return tuple(CARRIERS[k % len(CARRIERS)].format(w) for k, w in enumerate(rare_words()))


@lru_cache
def banned_sentences() -> frozenset[str]:
    return frozenset(NATURAL) | frozenset(EVERYDAY) | frozenset(template())


@lru_cache
def dialogues(count: int = 50, turns: int = 6) -> list[str]:
    """Scripts of 15-20 seconds from natural sentences in a drawn order, ending as Dia advises."""
    r, scripts = Random(DIALOGUE_SEED), []
    for _ in range(count):
        chosen = r.sample(NATURAL, turns)
        lines = [f"[S{1 + k % 2}] {s}" for k, s in enumerate(chosen)]
        scripts.append(" ".join(lines) + f" [S{1 + turns % 2}]")
    return scripts


@lru_cache
def lengths(count: int = 200, longest: int = 40) -> list[str]:
    """Scripts of 1, 2, ... `longest` words again and again, cut out of the natural sentences.

    Every third has two speakers and every fourth ends with a bare tag.
    """
    r, scripts = Random(LENGTH_SEED), []
    for k in range(count):
        wanted, first = 1 + k % longest, 1 + r.randrange(2)
        said = " ".join(r.sample(NATURAL, 8)).split()[:wanted]
        text = " ".join(said).rstrip(",")
        text = text if text[-1] in ".?!" else text + "."
        stops = [m.end() for m in re.finditer(r"[.?!] ", text)]
        script = f"[S{first}] {text}"
        if k % 3 == 2 and stops:
            at = r.choice(stops)
            script = f"[S{first}] {text[:at]}[S{3 - first}] {text[at:]}"
        scripts.append(script + (f" [S{3 - first}]" if k % 4 == 3 else ""))
    return scripts
