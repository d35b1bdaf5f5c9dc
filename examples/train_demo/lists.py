"""Generates requests for lists, rhymes and short poems, with their replies."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from counting import word
from grammar import Exchange, choose, listed, polish, typed
from knowledge import qa

GROUPS: dict[str, str] = {
    "fruits": "apple banana pear cherry orange plum grape lemon peach strawberry melon mango",
    "vegetables": "carrot potato onion cabbage cucumber tomato pea leek spinach radish",
    "animals": "dog cat horse fox bear lion elephant mouse wolf rabbit cow zebra monkey tiger",
    "farm animals": "cow pig hen sheep horse goat duck donkey goose",
    "wild animals": "lion tiger wolf bear fox elephant zebra deer",
    "sea animals": "whale dolphin crab shark octopus seal starfish turtle",
    "birds": "owl crow sparrow robin eagle swan duck parrot penguin goose",
    "insects": "ant bee butterfly fly ladybug beetle mosquito",
    "colours": "red blue green yellow orange purple pink black white brown grey",
    "flowers": "rose tulip daisy lily violet sunflower poppy",
    "trees": "oak pine birch maple willow palm beech",
    "tools": "hammer saw screwdriver drill shovel wrench rake",
    "toys": "ball doll kite puzzle top train teddy",
    "musical instruments": "piano violin drum flute guitar trumpet harp",
    "vehicles": "car bus train bicycle truck boat airplane tram",
    "drinks": "water milk tea coffee juice lemonade cocoa",
    "countries": "France Germany Italy Spain Japan China India Brazil Egypt Canada Peru Norway Greece",
    "cities": "Paris Berlin Rome London Tokyo Madrid Vienna Cairo Oslo Athens Lima",
    "planets": "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune",
    "clothes": "shirt coat hat scarf sock glove skirt sweater",
    "shapes": "circle square triangle rectangle hexagon oval star",
    "sports": "football tennis swimming running cycling skating basketball",
    "rooms": "kitchen bathroom bedroom hall attic cellar",
    "pieces of furniture": "table chair bed sofa desk wardrobe shelf",
    "names for a cat": "Misty Coco Luna Pebble Olive Ziggy Pepper",
    "names for a dog": "Rusty Biscuit Bo Waffles Button Sunny Dusty",
    "names": "Anna Tom Mia Ben Lucy Oscar Nora Leo Clara Felix",
    "things in a kitchen": "pot pan knife spoon oven fridge cup plate",
    "things in a school": "desk book pencil board chair map ruler",
    "things that are red": "tomato cherry strawberry blood apple",
    "things that are yellow": "lemon banana sun cheese corn",
    "things that fly": "bird bee kite airplane butterfly balloon",
    "foods": "bread cheese rice soup apple cake pasta egg",
    "jobs": "teacher doctor baker farmer cook sailor painter gardener",
    "parts of the body": "head arm leg hand foot nose ear knee",
    "languages": "English French German Spanish Italian Japanese Greek",
    "targets of Wherry": "CPU GPU phone browser",
}
LIST_ASK = (
    "[Name {n} {g}.|List {n} {g}.|Tell me {n} {g}.|Give me {n} {g}.|Can you name {n} {g}?|Give me a list of {n} {g}.|"
    "Please list {n} {g}.|Can you list {n} {g}?|What are {n} {g}?|Say {n} {g}.|I need {n} {g}.]"
)
_ONE_ASK = "[Name a {g}.|Tell me a {g}.|Give me an example of a {g}.|Can you name a {g}?]"
SINGULAR = {"fruits": "fruit", "vegetables": "vegetable", "animals": "animal", "birds": "bird", "insects": "insect",
             "colours": "colour", "flowers": "flower", "trees": "tree", "tools": "tool", "toys": "toy", "drinks": "drink",
             "planets": "planet", "sports": "sport", "shapes": "shape", "sea animals": "sea animal"}  # fmt: skip


def item_list(rng: Random) -> Exchange:
    """Ask for some members of a group, in a sentence or as a numbered or dashed list."""
    group, members = rng.choice(list(GROUPS.items()))
    words = members.split()
    if group in SINGULAR and rng.random() < 0.15:
        return qa(
            rng,
            "list",
            _ONE_ASK,
            "[{w}.|One {g} is the {w}.|{w} is a {g}.]",
            g=SINGULAR[group],
            w=rng.choice(words),
        )
    count = rng.randint(2, min(6, len(words)))
    picks = rng.sample(words, count)
    style = rng.choices(["sentence", "numbered", "dashed"], [6, 2, 1])[0]
    if style == "sentence":
        reply = choose(rng, "[{w}.|{w}.|{n} {g} are {w}.|Here are {n} {g}: {w}.]").format(
            w=listed(picks), n=word(count), g=group
        )
    elif style == "numbered":
        reply = "\n".join(f"{i}. {w.capitalize()}" for i, w in enumerate(picks, 1))
    else:
        reply = "\n".join(f"- {w.capitalize()}" for w in picks)
    count_text = word(count) if rng.random() < 0.7 else str(count)
    user = typed(rng, choose(rng, LIST_ASK).format(n=count_text, g=group))
    return Exchange(user, polish(reply), "list")


RHYMES = (
    "cat hat mat rat bat|mouse house|dog frog log fog|bee tree sea free|moon spoon soon|star car far|light night bright|"
    "snow go slow grow|rain train again|fox box socks|day play way say|sun fun run|boat coat goat float|king ring sing wing|"
    "cake lake make|sky fly high|bear chair hair|bed red head|ball wall tall fall|fish dish wish|snail tail sail|hen pen ten|"
    "sheep deep sleep|duck luck|book look cook|bell well shell|door floor|stone bone alone|green queen seen|kite white bright"
).split("|")

_POEMS: tuple[tuple[str, str], ...] = (
    ("cat", "[A little cat sat on a mat|A sleepy cat sat on a hat],\n[and dreamed of milk, and that was that|it purred and purred, so soft and fat].\n[It heard a mouse, it heard a bee|The moon came up above the tree],\n[but slept as soundly as can be|and all was quiet as can be]."),
    ("sea", "The sea is [wide|deep], the sea is blue,\n[a little boat sails on it, too|it sings a song for me and you].\n[The waves go up, the waves go down|The gulls cry out, the fish swim by],\n[and carry it from town to town|and over all there hangs the sky]."),
    ("moon", "The moon looks in [at night to see|through every tree],\n[if you are sleeping, just like me|how sound asleep a child can be].\n[The stars keep watch, the wind is mild|It shines on hill and house and stream],\n[good night, good night, my little child|and paints with silver every dream]."),
    ("rain", "[Drip, drop|Pitter, patter], says the rain,\n[knocking at my window pane|on the roof and down the lane].\n[Flowers drink and frogs all sing|Puddles grow and ducks are glad],\n[rain is such a happy thing|the best of days they ever had]."),
    ("spring", "[The snow is gone, the grass is green|The sun is warm, the sky is clean],\n[the finest spring that I have seen|the brightest day there's ever been].\n[The birds are back, the bees all hum|A flower opens, then one more],\n[and tell us all that spring has come|and spring is standing at the door]."),
    ("boat", "A little boat [went|sailed] out to sea,\n[with room for you and room for me|as light and happy as can be].\n[The wind was kind, the waves were small|It carried songs, it carried tea],\n[and it came home with one and all|and came home safely, just in time for tea]."),
    ("fox", "A fox went [walking|running] in the night,\n[the moon was round, the moon was bright|the stars above gave all their light].\n[It found a box, it found a hen|It saw the hens, it saw the door],\n[and then it ran back home again|and then it went to sleep once more]."),
    ("snow", "[Snow is falling, soft and slow|White and quiet falls the snow],\n[on the roofs and fields below|everywhere the cold winds blow].\n[Come and build a man of white|Children run with sled and hat],\n[who will guard the house at night|what could be more fun than that]?"),
    ("tree", "[I know a tree upon a hill|A tall old tree stands on the hill],\n[and when the wind blows, it stands still|and when the others shake, it's still].\n[It gives the birds a place to rest|Its arms are wide, its roots are deep],\n[and each small branch can hold a nest|and in its shade the sheep all sleep]."),
    ("bird", "A [little|tiny] bird sat in a tree,\n[and sang a morning song to me|as small and happy as can be].\n[It sang of sun, it sang of sky|It spread its wings, it flew up high],\n[and then it said a short goodbye|and left a feather in the sky]."),
    ("friends|a friend|friendship", "A friend is [someone who will stay|there to help and play],\n[on sunny and on rainy day|and never simply goes away].\n[We share our bread, we share our fun|We laugh at all that we have done],\n[two are more than only one|and watch together the evening sun]."),
    ("dog", "[My dog is big, my dog is brown|I have a dog, his name is Brown],\n[he runs with me all over town|he is the fastest dog in town].\n[He brings the ball, he brings the shoe|He wags his tail, he licks my hand],\n[and then he brings the paper, too|the best dog there is in the land]."),
)  # fmt: skip
_POEM_ASK = "[Write|Tell me|Say|Can you write|Give me|Please write|I would like|Write me|Do you know] a [poem|short poem|little poem|rhyme|verse|nursery rhyme] about {x}."
_ANY_POEM = "[Write a poem.|Tell me a poem.|Say a rhyme.|Do you know a poem?|Can you write a poem?|A poem, please.|Tell me a rhyme.|Write me a short poem]"


def poem(rng: Random) -> Exchange:
    """Ask for a short poem."""
    topics, text = rng.choice(_POEMS)
    topic = rng.choice(topics.split("|"))
    ask = _ANY_POEM if rng.random() < 0.3 else _POEM_ASK
    article = (
        rng.choice(["the ", "a "])
        if topic not in ("friends", "a friend", "friendship", "spring", "rain", "snow")
        else ""
    )
    if topic in ("sea", "moon"):
        article = "the "
    return Exchange(
        typed(rng, choose(rng, ask).format(x=article + topic)), polish(choose(rng, text)), "poem"
    )


def rhyme(rng: Random) -> Exchange:
    """Ask for a word that rhymes with another."""
    words = rng.choice(RHYMES).split()
    a, b = rng.sample(words, 2)
    ask = "[What rhymes with {a}?|Which word rhymes with {a}?|Tell me a word that rhymes with {a}.|Give me a rhyme for {a}.|A rhyme for {a}?]"
    return qa(rng, "rhyme", ask, "[{b} rhymes with {a}.|{a} rhymes with {b}.|{b}.]", "", a=a, b=b)


def lists_and_poems(rng: Random) -> Exchange:
    """Return a list, a rhyme or a poem."""
    return rng.choices([item_list, rhyme, poem], [9, 1.5, 2])[0](rng)
