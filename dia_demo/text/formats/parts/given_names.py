"""Common given names, which tell a speaker's label from any other word before a colon.

Names that are also everyday nouns, verbs or months are not among them.
"""

GIVEN_NAMES = frozenset(
    """
    aaron abby abdul abigail abraham adam adele adrian agatha agnes ahmed aidan aiko akira alan
    albert alberto alejandro alessandro alex alexa alexander alexandra alexis alfie alfred ali
    alice alicia alina alison allen allison alma amanda amara amelia amina amir amy ana
    anastasia anders andre andrea andreas andrei andrew andy angel angela angelina angie angus
    anika anil anita anja ann anna annabel anne annette annie anthony antoine anton antonia
    antonio anya aoife archie ariana ariel arjun arlo arnold arthur asha ashley astrid audrey
    ava avery axel aya ayesha bailey barbara barney barry bart beatrice becky bella ben benedict
    benjamin bennett bernard bernie bert bertha beth bethany betty beverly bianca billy bjorn
    bob bobby bonnie boris brad bradley brandon brenda brendan brett brian bridget brooke bruce
    bruno bryan caitlin caleb callum calvin cameron camila camilla carl carla carlo carlos
    carmen carol carole carolina caroline carolyn carter casey cassandra catherine cathy cecil
    cecilia cedric celia celine chandra charlene charles charlie charlotte chelsea chen cheryl
    chloe chris christian christina christine christoph christopher chuck cindy claire clara
    clarence clarissa claude claudia clemens clyde cody cole colette colin connie connor conrad
    cora corey courtney craig cristina curtis cynthia daisy dale damian damien dan dana daniel
    daniela danielle danny daphne darius darren daryl dave david davide dawson dean debbie
    deborah declan delia denise dennis derek desmond devon diana diane diego dieter dimitri dina
    dirk dmitri dolores dominic don donald donna dora doris dorothy doug douglas duncan dustin
    dwight dylan eddie edgar edith edmund eduardo edward edwin eileen ekaterina elaine eleanor
    elena eli elias elif elijah elise eliza elizabeth ella ellen ellie elliot elliott elsa elsie
    emil emilia emily emma emmanuel enrique eric erica erik erika erin ernest esme esther ethan
    eugene eva evan eve evelyn ezra fabian farah fatima felicia felix fernando finn fiona floyd
    frances francesca francesco francine francis francois frankie franz fred freddie frederick
    freya frida fritz gabriel gabriela gail gareth gary gavin gemma geoff geoffrey george gerald
    gerard gert gertrude gianna gina giovanni giulia gladys glen glenn gloria gordon graham greg
    gregory greta guido gustav guy gwen hank hannah hans harold harriet harrison harry harvey
    hasan hassan hazel heather hector heidi helen helena helga henri henrik henry herbert herman
    hilda hiro holly horace howard hubert hugh hugo ian ibrahim ida ignacio igor ilse imogen
    ines ingrid ira irene irina iris isaac isabel isabella isla ismail ivan ivy jackie jacob
    jacqueline jacques jade jaime jake jamal james jamie jan jana jane janet janice jared jason
    javier jay jean jeanne jeff jeffrey jen jenna jennifer jenny jens jeremy jerome jerry jess
    jesse jessica jessie jill jim jimmy jing jo joan joanna joanne joaquin jodie joe joel joey
    johan johanna johannes john johnny jon jonah jonas jonathan jorge jose josef joseph
    josephine josh joshua joyce juan juanita judith judy jules julia julian juliana julie juliet
    julio julius jun jurgen justin kai karen karim karin karina karl karla kasper kate katerina
    katharina katherine kathleen kathryn kathy katie katja katrina katy kayla keiko keith kelly
    kelvin ken kenji kenneth kerry kevin khalid kieran kim kimberly kirk kirsten klaus kofi
    kristen kristina kumar kurt kwame kyle lana lara larry lars laszlo laura lauren laurence
    lawrence lea leah leila lena lenny leo leon leonard leonardo leroy leslie lester lewis li
    liam lila lillian linda lindsay ling lionel lisa liz liza lloyd lois lola lorenzo lorraine
    lotte lou louis louisa louise luc luca lucas lucia lucy luis luisa lukas luke luna lydia
    lyle lynn mabel maddie madeleine madison magda maggie magnus malcolm malik manuel marc
    marcel marcia marco marcus margaret margot maria mariam marian marianne marie marina mario
    marion marjorie marlene marta martha martin martina marvin mary mateo mathias matilda matt
    matteo matthew matthias maureen maurice max maxim maxine maya megan mei mel melanie melinda
    melissa mercedes mia michael michel michelle miguel mika mike mila mildred milena miles milo
    mina mira miranda miriam mitchell mohamed mohammed moira molly mona monica monika morgan
    moritz moses muhammad muriel murray myra nadia nadine nan nancy naomi natalia natalie
    natasha nathan nathaniel neil nelson niall nicholas nick nico nicola nicolas nicole nigel
    nikhil niko nikolai nils nina noah noel nora norma norman olaf oleg olga olive oliver olivia
    ollie omar oscar oskar otis otto owen pablo paige pam pamela paolo pascal patricia patrick
    patty paul paula paulina pauline pavel pedro peggy penelope percy pete peter petra phil
    philip philippa phillip phoebe phyllis pia pierre pippa polly priya quentin quinn rachel
    rafael raj rajesh ralph ramon rana randy raphael rashid raul ravi raymond rebecca reggie
    regina reginald reza rhys ricardo richard rick ricky rita robert roberta roberto robin robyn
    rodney rodrigo roger roland rolf roman romeo ron ronald ronnie rory rosa rosalie rosalind
    rosemary rosie ross rowan roxanne roy rudolf rudy rupert russell ruth ryan sabine sabrina
    sadie sakura sally salma sam samantha samir samuel sandra sanjay santiago sara sarah sasha
    saul scott sean sebastian selena selma serena sergei sergio seth shane shannon sharon shaun
    shawn sheila shelley sherry shirley sid sidney sienna sigrid silvia simon simone sofia sofie
    solomon sonia sonja sophia sophie stacey stacy stan stanley stella stephanie stephen steve
    steven stewart stuart sue sunil susan susanna susie suzanne sven svetlana sybil sylvia
    tamara tamsin tania tanya tara tariq tasha tatiana ted teresa terrence terry tess tessa thea
    thelma theo theodore theresa thomas tia tiffany tilda tim timothy tina tobias toby todd tom
    tomas tommy toni tony tracey tracy travis trevor trisha tristan trudy tyler uma ursula
    valentina valerie vanessa vera verity veronica vicky victor victoria vijay vikram vince
    vincent viola violet vivian vlad vladimir wade wallace walter wanda warren wayne wei wendy
    wes wesley wilbur wilhelm willem william winnie winston wolfgang xavier xiao yan yara yasmin
    yasmine yolanda yosef youssef yuki yuri yusuf yvette yvonne zach zachary zack zara zelda zoe
    zoey zoltan
    """.split()
)
