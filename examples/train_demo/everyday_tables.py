"""The tables of everyday things from which exchanges are built: nouns, trades, sizes, riddles."""
# ruff: noqa: E501  (tables)
# fmt: off

from __future__ import annotations

NOUNS: dict[str, str] = {
    "a house": "A house is a building in which people live.",
    "a school": "A school is a place where children learn.",
    "a hospital": "A hospital is a place where doctors help sick people.",
    "a library": "A library is a place with many books that you can borrow.",
    "a river": "A river is a stream of water that flows to the sea.",
    "a lake": "A lake is a large area of water with land all around it.",
    "the sea": "The sea is a very large area of salt water.",
    "an ocean": "An ocean is a huge sea between the continents.",
    "a mountain": "A mountain is a very high hill of rock.",
    "a forest": "A forest is a place where many trees grow.",
    "a desert": "A desert is a dry place with much sand and little rain.",
    "an island": "An island is land with water all around it.",
    "a city": "A city is a very big town where many people live.",
    "a village": "A village is a small place in the country where people live.",
    "a country": "A country is a land with its own people and government.",
    "a farm": "A farm is a place where people grow food and keep animals.",
    "a garden": "A garden is a place where flowers and vegetables grow.",
    "a park": "A park is a green place in a town where people can walk and play.",
    "a market": "A market is a place where people buy and sell things.",
    "a shop": "A shop is a place where you can buy things.",
    "a kitchen": "A kitchen is the room where you cook.",
    "a castle": "A castle is a big old house with strong walls and towers.",
    "a bridge": "A bridge is a way over a river or a road.",
    "a road": "A road is a way on which cars can drive.",
    "a star": "A star is a huge ball of hot gas that shines in the sky.",
    "a planet": "A planet is a large ball that goes around a star.",
    "a rocket": "A rocket is a vehicle that flies into space.",
    "a ship": "A ship is a big boat which sails on the sea.",
    "a wheel": "A wheel is a round thing that turns and makes things roll.",
    "a family": "A family is a group of people such as parents and their children.",
    "a mother": "A mother is a woman who has a child.",
    "a father": "A father is a man who has a child.",
    "a brother": "A brother is a boy who has the same parents as you.",
    "a sister": "A sister is a girl who has the same parents as you.",
    "a grandmother": "A grandmother is the mother of your mother or father.",
    "an uncle": "An uncle is the brother of your mother or father.",
    "an aunt": "An aunt is the sister of your mother or father.",
    "a king": "A king is a man who rules a country.",
    "a queen": "A queen is a woman who rules a country, or the wife of a king.",
    "a dragon": "A dragon is a big animal in stories which can fly and breathe fire.",
    "a unicorn": "A unicorn is a horse with one horn, which you find only in stories.",
    "a robot": "A robot is a machine that can do work by itself.",
    "a computer": "A computer is a machine that works with numbers, words and pictures.",
    "a word": "A word is a group of letters with a meaning.",
    "a letter": "A letter is a sign such as A or B, or a text that you send to somebody.",
    "a number": "A number tells how many things there are.",
    "a story": "A story tells what happened to somebody, true or made up.",
    "a poem": "A poem is a short text in lines, which often rhyme.",
    "a rhyme": "A rhyme is when two words end with the same sound, like cat and hat.",
    "a song": "A song is music with words that you can sing.",
    "a game": "A game is something that you play for fun.",
    "a dream": "A dream is a story that you see while you sleep.",
    "a wish": "A wish is something that you would like to have or to happen.",
    "a secret": "A secret is something that only a few people know.",
    "a treasure": "A treasure is something of great value, such as gold.",
    "a seed": "A seed is a small thing from which a plant grows.",
    "a flower": "A flower is the colourful part of a plant.",
    "a tree": "A tree is a tall plant with a trunk of wood.",
    "a leaf": "A leaf is the flat green part of a plant.",
    "an egg": "An egg is laid by a bird, and a chick can grow in it.",
    "a nest": "A nest is a home that a bird builds for its eggs.",
    "wood": "Wood is the hard material of trees.",
    "glass": "Glass is a hard material which you can see through.",
    "paper": "Paper is a thin material made from wood, on which you can write.",
    "metal": "Metal is a hard and shiny material, such as iron or gold.",
    "gold": "Gold is a yellow metal that is very valuable.",
    "water": "Water is a clear liquid which all living things need.",
    "air": "Air is what we breathe. It is all around us.",
    "fire": "Fire is what you see when something burns. It is hot and bright.",
    "light": "Light is what lets us see. It comes from the sun or from a lamp.",
    "a shadow": "A shadow is a dark place where something stops the light.",
    "time": "Time is what a clock measures: seconds, minutes, hours and days.",
    "a year": "A year is the time in which the Earth goes once around the sun. It has twelve months.",
    "a week": "A week is seven days.",
    "a birthday": "A birthday is the day of the year on which you were born.",
    "winter": "Winter is the cold season between autumn and spring.",
    "summer": "Summer is the warm season between spring and autumn.",
    "spring": "Spring is the season in which everything begins to grow.",
    "autumn": "Autumn is the season in which the leaves fall.",
    "breakfast": "Breakfast is the first meal of the day.",
    "dinner": "Dinner is the main meal of the day, often in the evening.",
    "bread": "Bread is a food that is baked from flour and water.",
    "soup": "Soup is a warm liquid food which you eat with a spoon.",
    "a sandwich": "A sandwich is two slices of bread with something between them.",
    "pizza": "Pizza is a flat bread with tomato and cheese, baked in an oven.",
    "ice cream": "Ice cream is a cold sweet food made of milk and sugar.",
    "a bird": "A bird is an animal with feathers and wings.",
    "an insect": "An insect is a small animal with six legs.",
    "a mammal": "A mammal is an animal which gives milk to its young.",
    "an animal": "An animal is a living thing that can move and must eat.",
    "a plant": "A plant is a living thing that grows in the earth and needs light.",
    "a person": "A person is a man, a woman or a child.",
    "a baby": "A baby is a very young child.",
    "courage": "Courage means to do what is right although you are afraid.",
    "happiness": "Happiness is the good feeling when you are glad.",
    "patience": "Patience means to wait calmly.",
    "honesty": "Honesty means to tell the truth.",
    "luck": "Luck is when something good happens by chance.",
    "a holiday": "A holiday is a day on which you do not have to work.",
    "money": "Money is what you pay with when you buy things.",
    "the internet": "The internet is a network which connects computers all over the world.",
    "a program": "A program is a list of instructions for a computer.",
    "a file": "A file is a piece of data with a name on a computer.",
    "a terminal": "A terminal is a window in which you type commands for a computer.",
    "a compass": "A compass shows where north is.",
}

TRADES: dict[str, str] = {
    "baker": "bakes bread and cakes", "teacher": "helps children learn", "doctor": "helps sick people", "farmer": "grows food and keeps animals",
    "cook": "makes meals", "sailor": "works on a ship", "pilot": "flies an airplane", "gardener": "takes care of plants", "painter": "paints pictures or walls",
    "singer": "sings songs", "dancer": "dances", "writer": "writes books", "tailor": "makes clothes", "carpenter": "makes things of wood",
    "firefighter": "puts out fires", "policeman": "helps people and catches thieves", "postman": "brings letters", "fisherman": "catches fish",
    "shepherd": "takes care of sheep", "miner": "digs for coal or gold", "dentist": "takes care of teeth", "nurse": "takes care of sick people",
    "astronaut": "flies into space", "programmer": "writes programs", "king": "rules a country", "judge": "decides what is right by the law",
    "captain": "leads a ship", "clown": "makes people laugh", "librarian": "takes care of books", "blacksmith": "makes things of iron",
    "miller": "grinds grain into flour", "butcher": "sells meat", "barber": "cuts hair", "driver": "drives a car or a bus", "engineer": "plans machines and buildings",
    "scientist": "finds out how the world works", "waiter": "brings food and drinks to the guests", "student": "learns at a school",
}

# Animals in the order of their size, the smallest first.
SIZES = "an ant|a bee|a butterfly|a mouse|a frog|a squirrel|a cat|a fox|a dog|a sheep|a lion|a cow|a giraffe|an elephant|a whale".split("|")
# Animals and vehicles in the order of their speed, the slowest first.
SPEEDS = "a snail|a turtle|a person on foot|a bicycle|a car|a train|an airplane|a rocket".split("|")
FLIES = "owl crow bee butterfly eagle duck goose swan bat parrot sparrow robin".split()
NOT_FLIES = "dog cat cow horse pig sheep mouse lion elephant fox rabbit bear fish snake penguin frog".split()
SWIMS = "fish duck whale dolphin shark seal penguin frog swan octopus turtle goose crocodile".split()
LAYS = "hen duck goose owl crow eagle snake turtle crocodile penguin frog parrot".split()
NOT_LAYS = "dog cat cow horse lion elephant fox rabbit bear whale mouse wolf".split()

RIDDLES = [
    ("What has hands but cannot clap?", "a clock"), ("What has a neck but no head?", "a bottle"), ("What has teeth but cannot bite?", "a comb"),
    ("What gets wetter the more it dries?", "a towel"), ("What goes up and never comes down?", "your age"), ("What has one eye but cannot see?", "a needle"),
    ("What has keys but opens no doors?", "a piano"), ("What has legs but cannot walk?", "a table"), ("What runs but has no legs?", "water"),
    ("What is full of holes but holds water?", "a sponge"), ("What can you catch but not throw?", "a cold"), ("What has many leaves but is not a tree?", "a book"),
    ("What has a bed but never sleeps?", "a river"), ("What belongs to you, but others use it more?", "your name"), ("What comes down but never goes up?", "the rain"),
]

COMMON = (
    "cat dog fox sun moon star tree house mouse book fish bird boat ball bed cup hat key king lamp leaf milk nest rain ring road rose "
    "salt sea ship shoe snow sock song wind wolf bear duck frog goat hen horse lion pig sheep apple bread cake egg pear plum water "
    "school friend story table chair door window garden flower river green blue red black white happy small big hello good night"
).split()

PET_KINDS = "dog cat rabbit hamster parrot horse fish mouse turtle pony".split()
TOWNS = "Paris London Rome Berlin Madrid Vienna Oslo Tokyo Lima Boston Dublin Athens Hamburg Lyon Porto Delhi Cairo".split()
LIKES = "cats|dogs|stories|music|books|pizza|apples|the sea|football|dancing|singing|drawing|cake|horses|trains|rain|snow|foxes|flowers|games".split("|")
