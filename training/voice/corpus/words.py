"""Hand-written word lists for the sentence grammar (grammar.py). Only data lives here."""

PEOPLE = (
    "friend child man woman boy girl student teacher doctor farmer driver king queen father "
    "mother brother sister son daughter husband wife neighbor nurse lawyer policeman soldier "
    "captain president manager boss worker singer player artist writer baker cook waiter guest "
    "stranger visitor customer baby uncle aunt cousin grandmother grandfather family team class "
    "crowd lady gentleman judge reporter scientist engineer pilot sailor"
).split()
THINGS = (
    "cat dog horse bird book letter question answer story song picture house car train boat road "
    "river mountain flower tree apple table chair window door star cloud game job plan idea word "
    "number problem machine computer phone garden kitchen school office hospital market bridge "
    "city town village country island street station hotel church library room floor wall box "
    "bag bottle cup glass knife plate spoon hat coat shirt shoe bed lamp clock key map ticket "
    "newspaper movie camera radio television guitar piano ball party meeting lesson holiday "
    "dinner lunch breakfast sandwich cake cookie soup fish chicken egg potato tomato voice model "
    "sound page minute hour day week month year morning evening night summer winter spring "
    "moment world life heart hand head face eye foot arm leg body mind dream secret gift present "
    "prize race field forest lake beach ocean sea hill valley farm barn fence gate roof corner "
    "building tower castle palace museum theater restaurant shop store bank airport plane bus "
    "truck bicycle ship wheel engine battery screen button switch bell whistle drum violin "
    "trumpet choir band concert dance play scene stage film show news report paper pen pencil "
    "desk drawer shelf mirror picture painting photo blanket pillow towel soap brush comb dress "
    "skirt jacket sweater belt pocket wallet purse ring necklace watch umbrella stone rock shell "
    "leaf branch seed root grass bush rose cow pig sheep goat duck mouse rabbit lion tiger bear "
    "elephant monkey snake frog spider bee butterfly wolf fox deer turkey lemon orange banana "
    "grape cherry carrot onion pepper bean nut cheese pizza salad bowl fork pan pot oven stove "
    "fridge fire candle match smoke shadow storm wind bridge tunnel track path line circle "
    "square triangle point line list letter message email file program project test exam grade "
    "course subject language history science law rule reason chance choice change decision "
    "mistake accident fight war peace battle army weapon gun sword government state nation party "
    "vote election market price bill cost dollar penny pound business company factory product "
    "order record service system section part piece side end middle top bottom front back "
    "beginning example case fact truth lie joke sign symbol name address"
).split()
PLURALS = (
    "cats dogs horses birds friends children people students teachers doctors books letters "
    "questions answers stories songs pictures houses cars trains boats roads rivers mountains "
    "flowers trees apples oranges tables chairs windows doors stars clouds games jobs plans "
    "ideas words numbers problems machines computers phones shoes clothes men women boys girls "
    "parents neighbors brothers sisters days weeks months years hours minutes seconds hands eyes "
    "feet arms legs voices sounds pages rooms walls boxes bags bottles cups glasses knives "
    "plates keys maps tickets movies cookies eggs potatoes sandwiches leaves branches stones "
    "fields streets lights countries cities towns islands animals sheep cows ducks wolves bears "
    "lions candles messages names rules reasons mistakes dreams gifts secrets dollars miles "
    "pounds times things places"
).split()
MASS = (
    "water coffee tea milk bread butter cheese sugar salt rice meat fruit juice wine paper money "
    "music time work food ice rain snow wind light sand gold help information silver wood metal "
    "glass cloth leather air fire smoke love hope fun luck power energy space traffic weather "
    "advice homework furniture luggage news noise oil gas soup beer honey chocolate corn beef "
    "pork"
).split()
ADJECTIVES = (
    "big small old young new good bad happy sad tall short long red blue green black white brown "
    "yellow warm cold hot cool dark bright quiet loud fast slow strong weak rich poor clean "
    "dirty empty full heavy light soft hard sweet beautiful strange funny simple difficult "
    "important different little great nice kind brave tired hungry busy angry famous expensive "
    "cheap dangerous safe wonderful terrible perfect easy early late free open closed ready sure "
    "sorry proud afraid alone sick healthy smart stupid crazy lazy lucky lovely pretty ugly "
    "fresh dry wet deep wide narrow thick thin flat round sharp smooth rough common special "
    "serious silly natural modern ancient foreign local private public single double whole real "
    "true false right wrong gray pink purple orange golden silver wooden broken lost hidden "
    "secret final next last second third main certain clear possible impossible useful careful "
    "useless popular normal usual gentle fair calm"
).split()
VERBS_WITH_OBJECT = [
    tuple(verb.split("/"))
    for verb in (
        "see/saw find/found take/took bring/brought buy/bought sell/sold like/liked love/loved "
        "want/wanted need/needed make/made build/built open/opened close/closed watch/watched "
        "hear/heard remember/remembered forget/forgot carry/carried choose/chose draw/drew "
        "paint/painted clean/cleaned fix/fixed lose/lost keep/kept hold/held follow/followed "
        "visit/visited show/showed move/moved leave/left use/used try/tried touch/touched "
        "miss/missed share/shared count/counted describe/described know/knew get/got give/gave "
        "have/had tell/told ask/asked call/called meet/met help/helped believe/believed "
        "understand/understood teach/taught learn/learned write/wrote read/read eat/ate "
        "drink/drank "
        "cut/cut break/broke throw/threw catch/caught kick/kicked hit/hit push/pushed pull/pulled "
        "drop/dropped pick/picked pass/passed send/sent receive/received win/won save/saved "
        "spend/spent pay/paid order/ordered borrow/borrowed wear/wore wash/washed cook/cooked "
        "burn/burned plant/planted cover/covered fill/filled check/checked start/started "
        "stop/stopped finish/finished begin/began change/changed hide/hid steal/stole kill/killed "
        "fight/fought join/joined feel/felt smell/smelled taste/tasted hate/hated enjoy/enjoyed "
        "expect/expected explain/explained describe/described discover/discovered invite/invited "
        "thank/thanked answer/answered notice/noticed recognize/recognized imagine/imagined "
        "record/recorded"
    ).split()
]
VERBS_ALONE = [
    tuple(verb.split("/"))
    for verb in (
        "walk/walked run/ran sleep/slept wait/waited work/worked play/played sing/sang "
        "dance/danced "
        "swim/swam travel/traveled live/lived stay/stayed talk/talked laugh/laughed cry/cried "
        "smile/smiled sit/sat stand/stood study/studied read/read cook/cooked drive/drove fly/flew "
        "jump/jumped fall/fell rest/rested come/came go/went arrive/arrived leave/left "
        "return/returned grow/grew listen/listened speak/spoke shout/shouted whisper/whispered "
        "sneeze/sneezed cough/coughed dream/dreamed wake/woke hide/hid climb/climbed ride/rode "
        "shop/shopped die/died win/won"
    ).split()
]
PREPOSITIONS = (
    "in,near,behind,under,over,beside,across from,next to,in front of,outside,inside,around,on,"
    "at,by,above,below,with,without,between,through,into,from,against,along,past,toward,after,"
    "before"
).split(",")
TIMES = (
    "today,tomorrow,yesterday,tonight,now,every day,every morning,last night,last week,next week,"
    "next year,this morning,this afternoon,this evening,on monday,on tuesday,on wednesday,"
    "on thursday,on friday,on saturday,on sunday,at noon,at night,in the winter,in the summer,"
    "after dinner,before lunch,again,soon,later,all day,at home,once more,for a while,right now,"
    "at seven o'clock,in january,in july,in december,two days ago,a long time ago,"
    "for three hours,until midnight,as well,too,already,together,alone,first,then,there,here,"
    "everywhere,far away"
).split(",")
NAMES = (
    "John Mary Peter Anna David Sarah Tom Lucy Robert Emma James Alice Paul Jane Michael Susan "
    "George Helen Henry Kate Jack Laura Mark Julia Daniel Maria Sam Linda Steve Nancy Chris "
    "Betty Martin Rose"
).split()
PRONOUNS = ("I you we they he she").split()
ANYONE = ("someone everyone nobody anybody everybody").split()
DETERMINERS = ("the the the a my your his her our their this that").split()
ADVERBS = (
    "very too so really not quite always never often usually almost perhaps maybe probably "
    "already still only just even also certainly finally quickly slowly suddenly carefully "
    "quietly"
).split()
HOW_MUCH = ("very too so really not quite rather almost").split()
OPENERS = (
    "yes,no,well,oh,okay,sure,right,hello,hi,hey,thank you,thanks,good morning,good evening,"
    "good night,sorry,excuse me,please,of course,not really,all right,maybe,indeed,wow,ah,listen,"
    "look,wait,come on,I see,you know,my friend,in fact,at last,by the way,for example,after all,"
    "welcome,goodbye"
).split(",")
REPLIES = (
    "yes|no|hello|hi|okay|sure|why|why not|who is there|what|where|when|how|me too|not yet|never|"
    "always|of course|thank you|thanks a lot|you are welcome|good idea|good luck|see you soon|"
    "see you later|I know|I don't know|I think so|I don't think so|I'm not sure|that's right|"
    "that's great|that's all|what's that|who's that|it's me|it's here|let's go|let's see|"
    "let's wait|come here|come in|sit down|stand up|go away|go home|be quiet|be careful|be happy|"
    "don't worry|don't move|don't go|I can't|I can|I won't|we will|he did|she does|they are|"
    "isn't it|aren't you|really|exactly|maybe|goodbye|good morning|good evening|good night|"
    "happy birthday|how are you|I'm fine|very well|not bad|what time is it|what happened|"
    "what do you mean|where are you|I'm here|I'm sorry|excuse me|help me|stop it|try again|"
    "one more time|one two three|ten nine eight|that is true|it depends|my name is|"
    "nice to meet you|how old are you|here you are|wait a minute|just a moment|hurry up|"
    "look at this|listen to me|tell me more|say it again|I love it|I hate it|it works|"
    "it doesn't work"
).split("|")
CONTRACTIONS = (
    "I'm you're we're they're he's she's it's that's there's what's who's let's I'll you'll "
    "we'll they'll he'll she'll I've you've we've they've I'd you'd he'd don't doesn't didn't "
    "can't couldn't won't wouldn't shouldn't isn't aren't wasn't weren't haven't hasn't hadn't "
    "o'clock"
).split()
NUMBERS = (
    "two,three,four,five,six,seven,eight,nine,ten,eleven,twelve,thirteen,fourteen,fifteen,"
    "sixteen,seventeen,eighteen,nineteen,twenty,thirty,forty,fifty,sixty,seventy,eighty,ninety,"
    "a hundred,a thousand,a million"
).split(",")
