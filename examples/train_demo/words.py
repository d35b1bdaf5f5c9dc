"""Word lists from which stories are built."""
# ruff: noqa: E501  (word lists)

from __future__ import annotations

from random import Random

ANIMALS = (
    "fox rabbit bear mouse owl cat dog duck frog hedgehog squirrel deer wolf badger otter beaver "
    "turtle snail bee butterfly ladybug ant spider goat sheep lamb cow horse pony donkey pig hen "
    "rooster goose swan crow robin sparrow penguin seal whale dolphin crab octopus fish starfish "
    "lion tiger elephant monkey giraffe zebra hippo camel kangaroo koala panda parrot crocodile "
    "lizard snake bat mole raccoon moose puppy kitten chick piglet hamster peacock flamingo eagle"
).split()

PEOPLE = (
    "king queen prince princess knight wizard witch fairy giant pirate farmer baker sailor fisherman "
    "teacher doctor gardener clown cook painter singer dancer shepherd tailor blacksmith miller "
    "astronaut firefighter inventor postman grandmother grandfather"
).split()

WONDERS = (
    "dragon robot unicorn snowman scarecrow mermaid elf dwarf troll ghost monster dinosaur cloud star "
    "boat train kite balloon teapot lantern tree flower toy doll car bus tractor rocket clock"
).split()

GIRLS = (
    "Mia Lily Anna Emma Zoe Nora Ella Ruby Lucy Clara Ivy Rosa Maya Nina Sara Luna Kate Amy Tilda "
    "Hana Lena Olga Poppy Daisy Molly Wren Alice Greta Yara Amina Elsa Frida Ines Jade Kira Lotte Mina Nadia Paula Rita Sofia "
    "Tessa Una Vera Willa Zara Bella Celia Dora Edith Fiona Gilda Hedda Iris Judy Karin Laura Maud Nelly Odette Petra Robin "
    "Selma Thea Ursula Viola Wanda Xenia Yoko Agnes Berta Carla Diana Elena Flora Grace Helen Ida Jenny"
).split()
BOYS = (
    "Tom Ben Max Leo Sam Finn Jack Oscar Noah Theo Hugo Felix Otto Milo Paul Peter Adam Ravi Omar "
    "Luca Nils Emil Kai Jonas Henry Arthur Toby Ned Tariq Ivan Abel Boris Carl Dario Elias Frank George Hans Igor Joel Karim Lars "
    "Marco Nico Owen Philip Quinn Rolf Simon Timo Ulf Victor Walter Yusuf Zack Anton Bruno Chris Dan Eric Fred Gus Harry Ian Jim "
    "Kurt Louis Martin Nathan Oliver Pablo Ralph Stefan Thomas Umar Vito Will Yann Aron"
).split()
SHE_PETS = (
    "Coco Fern Hazel Misty Olive Juno Pearl Ginger Willow Berry Ember Echo Dot Sunny Pebble Fig Nutmeg Momo Acorn Sky Clover Maple "
    "Snowy Cookie Whisper Bubbles Velvet Marble Dune"
).split()
HE_PETS = (
    "Bo Ziggy Waffles Bramble Tiki Pepper Dusty Pickle Nibbles Socks Patch Flash Rocky Tiger Mango Peanut Lucky Tango Pumpkin Bean Moss "
    "Quill Rumble Sprout Tumble Wink Ash Bongo Chip Biscuit Pip Rusty Button Twig Bingo Shadow Scout Domino Fluff Hopper Puck Zigzag"
).split()
PETS = SHE_PETS + HE_PETS
# Names of one token each, which heroes get when the user asks for none: girls or boys, and pets.
SHE_SHORT = "Mia Lily Anna Nora Clara Greta Zara Bella Selma Wanda Odette".split(), SHE_PETS[:17]
HE_SHORT = "Tom Ben Leo Sam Ravi Jonas Carl Nathan".split(), HE_PETS[:30]

# Each place with the words before it, and the spot where a lost thing may be found there.
PLACES: dict[str, tuple[str, str]] = {
    "forest": ("in", "under a fern|behind an old oak|in a pile of leaves"),
    "beach": ("at", "behind a rock|under some seaweed|half in the sand"),
    "farm": ("on", "behind the barn|under the hay|next to the well"),
    "mountain": ("on", "between two stones|at the foot of a pine|in a small cave"),
    "village": ("in", "under a bench|behind the bakery|next to the fountain"),
    "river": ("by", "among the reeds|under the bridge|between the stones"),
    "garden": ("in", "under a cabbage leaf|behind the roses|in the flower bed"),
    "city": ("in", "on a park bench|under a parked car|next to a street lamp"),
    "meadow": ("in", "in the tall grass|among the daisies|behind a molehill"),
    "desert": ("in", "behind a cactus|under the warm sand|next to a dry bush"),
    "island": ("on", "under a palm tree|inside an empty shell|behind a rock"),
    "castle": ("in", "behind a curtain|under the long table|on the tower stairs"),
    "school": ("at", "under a desk|behind the bookshelf|on the playground"),
    "lake": ("by", "among the water lilies|under the jetty|behind a log"),
    "jungle": ("in", "under a giant leaf|in a hollow tree|between two vines"),
    "cave": ("in", "behind a big stone|in a dark corner|next to a small pool"),
    "market": ("at", "under a fruit stand|between two baskets|behind a barrel"),
    "park": ("in", "under a bench|by the pond|behind the slide"),
    "valley": ("in", "beside the stream|behind a hill|under a bush"),
    "harbour": ("in", "behind a pile of nets|under an old boat|between two ropes"),
    "library": ("in", "between two books|under a chair|on the lowest shelf"),
    "orchard": ("in", "under an apple tree|in a basket|behind a ladder"),
    "swamp": ("in", "on a mossy log|under a lily leaf|in the mud"),
    "hill": ("on", "behind a stone wall|in the heather|under a small tree"),
    "zoo": ("at", "behind the ticket house|under a bench|near the ponds"),
    "woods": ("in", "under a mushroom|behind a stump|in a heap of leaves"),
    "sea": ("by", "between the rocks|under some seaweed|inside a big shell"),
    "town": ("in", "under a bench|behind the town hall|next to the fountain"),
    "moon": ("on", "behind a grey rock|at the bottom of a crater|under the silver dust"),
    "lighthouse": ("at", "on the stairs|behind the big lamp|under a blanket"),
}

THINGS = (
    "ball hat kite key scarf book drum bell lantern shell ring basket umbrella whistle button coin "
    "map flute boot teddy spoon cup ribbon marble paintbrush mirror pillow blanket bicycle sled watch "
    "violin candle crown feather stone necklace backpack glove pencil"
).split()
COLOURS = "red blue green yellow orange purple pink white black brown golden silver".split()
TRAITS = (
    "little small young kind brave shy curious clever gentle cheerful quiet busy funny sleepy lonely "
    "happy friendly merry careful proud playful hungry lazy polite"
).split()
HELPERS = "old wise kind friendly gentle clever big small patient cheerful".split()
FOODS = (
    "apples|berries|nuts|carrots|honey|bread|cheese|pears|cherries|cake|pancakes|corn|plums|"
    "strawberries|mushrooms|cookies|pie"
).split("|")
SKILLS: dict[str, str] = {
    "swim": "sank like a stone",
    "dance": "stepped on {his} own feet",
    "sing": "made a terrible noise",
    "whistle": "could only blow air",
    "paint": "made a big wet mess",
    "read": "mixed up all the letters",
    "bake bread": "burned the first loaf",
    "ride a bike": "fell into a bush",
    "play the drum": "lost the beat",
    "skate": "slid on {his} bottom",
    "climb": "slipped down again",
    "juggle": "dropped every ball",
    "fly a kite": "let the string get into a knot",
    "row a boat": "went round and round in circles",
    "count to ten": "forgot the seven every time",
    "build a sandcastle": "watched it fall down",
    "tie a knot": "got tangled up",
    "jump rope": "tripped at the first jump",
}
FEARS: dict[str, str] = {
    "the dark": "the dark only hides the same friendly things that are there by day",
    "thunder": "thunder is only a loud noise which the clouds make",
    "deep water": "water carries you if you stay calm",
    "high places": "one small step at a time is enough",
    "strangers": "every friend was a stranger once",
    "loud noises": "a noise cannot hurt you",
    "spiders": "spiders are more afraid of us than we are of them",
    "being alone": "someone who loves you is never far away",
    "the wind": "the wind only wants to play with the leaves",
    "shadows": "a shadow is only a place where the light does not reach",
}
# Goals of which a hero may dream.
GOALS = (
    "touch the [moon|stars|clouds|rainbow|sky]",
    "see the [sea|world|king|queen|snow|desert|big city|mountains|moon from near|whole world from above]",
    "become a [king|queen|pirate|sailor|dancer|singer|knight|doctor|teacher|baker|wizard|clown|star|painter|captain]",
    "find [a star|a treasure|the end of the rainbow|a golden feather|a four-leaf clover|a magic stone|the lost city|a new home]",
    "build a [boat|house|tower|rocket|bridge|treehouse|flying machine|castle|robot|raft|snow castle|train]",
    "fly [high|to the moon|over the sea|like a bird|in a balloon|to the stars|through the clouds]",
    "visit [the king|the moon|a far island|the big city|the clouds|the end of the world|the stars|the North Pole]",
    "write a [book|song|poem|letter to the moon|story]",
    "bake [the biggest cake in the world|a cake for the king|the best bread of all|a pie as big as a wheel]",
    "travel [around the world|to the moon|to the stars|to the sea|by train|on a ship]",
    "climb [the highest mountain|the tallest tree|to the top of the tower|up to the clouds]",
    "catch [a cloud|the wind|a falling star|a rainbow|the biggest fish|the sun]",
    "open a [bakery|small shop|school|tea house|library|hotel for birds]",
    "swim [across the lake|to the island|with the whales|in the deep sea]",
    "meet a [dragon|king|queen|whale|giant|mermaid|unicorn|wizard|real pirate|lion|star]",
    "win [the big race|a golden cup|a prize|the dance contest|the singing contest]",
    "sail [across the sea|to a far island|down the river|around the world]",
    "plant [a forest|the tallest sunflower|a garden full of roses|an apple tree]",
    "paint [the whole sky|the finest picture|a portrait of the king|the house in every colour]",
    "sleep [on a cloud|under the stars|in a real bed]",
    "speak with [the birds|the moon|the trees|the fish]",
    "make [everybody laugh|a new friend|the longest chain of flowers|a hat for an elephant|snow in summer]",
)
RARE = (
    "potato|banana|carrot|pumpkin|apple|mushroom|chair|table|lamp|shoe|sock|spoon|pencil|book|bridge|house|river|raindrop|"
    "snowflake|leaf|stone|submarine|airplane|truck|computer|phone|guitar|piano|vampire|zombie|alien|goblin|genie|nurse|policeman|"
    "scientist|engineer|programmer|student|baby|old man|old woman|brother|sister|polar bear|shark|worm|beetle|pigeon|stork|cactus|"
    "rose|sunflower|teddy bear|snowball|bicycle|ship|wherry|windmill|bell|pillow|candle|hat|cookie|cupcake|egg|cheese|moth|rat|"
    "jellyfish|seahorse|lobster|ostrich|turkey|bull|buffalo|cheetah|leopard|gorilla|sloth|skunk|ferret|chipmunk|falcon|seagull"
).split("|")
# Each weather with an adjective, with what it did, and with what was fun about it.
WEATHERS: dict[str, tuple[str, str, str]] = {
    "rain": (
        "rainy",
        "the rain fell and fell, and the paths turned into mud",
        "jump in the puddles",
    ),
    "snow": ("snowy", "the snow covered every path and every roof", "build a snowman"),
    "wind": ("windy", "the wind pulled at the trees and blew the leaves about", "fly a kite"),
    "fog": (
        "foggy",
        "the fog was as thick as milk, and nobody could see far",
        "play hide and seek",
    ),
    "storm": ("stormy", "the storm roared and the lightning flashed", "tell stories by the fire"),
    "sun": ("sunny", "the sun was so hot that the grass turned yellow", "splash in cool water"),
    "ice": ("icy", "the ground was covered in slippery ice", "slide down the hill"),
}

_SYLLABLES = "ba be bi bo da do fi fo ga ka ki la le li lo lu ma mi mo na ni no pa pe po ra ri ro sa ta ti to va vi wa zo zu".split()


def new_name(rng: Random) -> str:
    """Return an invented name that no list has, so that the model learns to copy names."""
    name = "".join(rng.choice(_SYLLABLES) for _ in range(rng.choice([2, 2, 3])))
    return (name + rng.choice(["", "", "n", "r", "x", "s"])).capitalize()


def place_phrase(place: str) -> str:
    """Return the phrase for a place, for example `in the forest`."""
    return f"{PLACES[place][0]} the {place}"
