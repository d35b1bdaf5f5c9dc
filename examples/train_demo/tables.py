"""Tables of simple facts about animals, countries, colours and other things."""
# ruff: noqa: E501  (tables)
# fmt: off

from __future__ import annotations

CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon", "England": "London",
    "Ireland": "Dublin", "Scotland": "Edinburgh", "Norway": "Oslo", "Sweden": "Stockholm", "Denmark": "Copenhagen",
    "Finland": "Helsinki", "Poland": "Warsaw", "Austria": "Vienna", "Greece": "Athens", "Hungary": "Budapest",
    "Russia": "Moscow", "Turkey": "Ankara", "Egypt": "Cairo", "Kenya": "Nairobi", "Japan": "Tokyo", "China": "Beijing",
    "India": "New Delhi", "Thailand": "Bangkok", "South Korea": "Seoul", "Australia": "Canberra", "Canada": "Ottawa",
    "the United States": "Washington", "Mexico": "Mexico City", "Brazil": "Brasilia", "Argentina": "Buenos Aires",
    "Peru": "Lima", "Chile": "Santiago", "Cuba": "Havana", "Belgium": "Brussels", "the Netherlands": "Amsterdam",
}

OPPOSITES = [
    tuple(pair.split("-"))
    for pair in (
        "hot-cold big-small tall-short fast-slow happy-sad day-night light-dark up-down left-right open-closed full-empty "
        "old-young rich-poor hard-soft wet-dry clean-dirty loud-quiet early-late near-far high-low thick-thin strong-weak "
        "good-bad right-wrong first-last inside-outside begin-end push-pull win-lose buy-sell give-take come-go laugh-cry "
        "love-hate question-answer black-white long-short heavy-light deep-shallow wide-narrow sweet-sour brave-afraid "
        "awake-asleep always-never yes-no summer-winter north-south east-west above-below front-back true-false "
        "friend-enemy smooth-rough easy-difficult safe-dangerous beautiful-ugly cheap-expensive alive-dead remember-forget "
        "find-lose arrive-leave sit-stand on-off more-less many-few everything-nothing"
    ).split()
    if pair not in ("tall-short", "light-dark", "right-wrong", "find-lose")
]

COLOURS_OF = {
    "the sky": "blue", "grass": "green", "snow": "white", "the sun": "yellow", "a banana": "yellow", "a lemon": "yellow",
    "a tomato": "red", "a strawberry": "red", "a cherry": "red", "blood": "red", "a carrot": "orange", "an orange": "orange",
    "a pumpkin": "orange", "a leaf": "green", "a frog": "green", "a cucumber": "green", "milk": "white", "coal": "black",
    "the night": "black", "chocolate": "brown", "wood": "brown", "an elephant": "grey", "a mouse": "grey", "a flamingo": "pink",
    "a pig": "pink", "a polar bear": "white", "a crow": "black", "the sea": "blue", "a fire engine": "red", "salt": "white",
    "gold": "yellow and shiny", "a plum": "purple", "a zebra": "black and white", "a panda": "black and white",
    "a penguin": "black and white", "a fox": "red and white", "a swan": "white", "an egg": "white or brown",
    "a violet": "purple", "an apple": "red or green", "a rose": "red or pink", "broccoli": "green", "corn": "yellow",
    "a cloud": "white or grey", "a ladybug": "red with black dots", "a bee": "yellow and black", "a tiger": "orange with black stripes",
    "a lion": "golden brown",
}

PLURALS = {
    "fox": "foxes", "mouse": "mice", "sheep": "sheep", "goose": "geese", "wolf": "wolves", "deer": "deer", "fish": "fish",
    "butterfly": "butterflies", "pony": "ponies", "octopus": "octopuses", "hippo": "hippos",
}

# Facts of each animal: sound, home, food, name of the young, and a sentence.
ANIMALS: dict[str, tuple[str, str, str, str, str]] = {
    "dog": ("woof", "with people in a house", "meat and dog food", "puppy", "A dog is a loyal animal which is a good friend of people."),
    "cat": ("meow", "with people in a house", "fish and mice", "kitten", "A cat is a soft animal which likes to sleep and to hunt mice."),
    "cow": ("moo", "on a farm", "grass", "calf", "A cow is a big farm animal which gives us milk."),
    "horse": ("neigh", "in a stable", "grass and hay", "foal", "A horse is a strong animal with long legs that can run fast."),
    "pig": ("oink", "on a farm", "corn and roots", "piglet", "A pig is a clever farm animal with a curly tail."),
    "sheep": ("baa", "on a meadow", "grass", "lamb", "A sheep is a farm animal with soft wool."),
    "duck": ("quack", "on a pond", "water plants and snails", "duckling", "A duck is a bird that can swim, walk and fly."),
    "hen": ("cluck", "on a farm", "corn and worms", "chick", "A hen is a bird which lays eggs."),
    "rooster": ("cock-a-doodle-doo", "on a farm", "corn and worms", "chick", "A rooster is a bird which crows in the morning."),
    "goat": ("meh", "in the mountains and on farms", "grass and leaves", "kid", "A goat is an animal with horns that climbs very well."),
    "frog": ("ribbit", "by a pond", "flies and insects", "tadpole", "A frog is a small green animal that can jump far."),
    "bee": ("buzz", "in a hive", "nectar from flowers", "", "A bee is a small insect that makes honey and helps flowers."),
    "lion": ("roar", "on the grasslands of Africa", "meat", "cub", "A lion is a big cat, and the male has a mane."),
    "tiger": ("roar", "in the jungle", "meat", "cub", "A tiger is the biggest cat, and it has stripes."),
    "wolf": ("awoo", "in the forest", "meat", "pup", "A wolf is a wild relative of the dog and lives in a pack."),
    "owl": ("hoo hoo", "in a hollow tree", "mice", "owlet", "An owl is a bird that flies at night without a sound."),
    "crow": ("caw", "in the trees", "seeds and insects", "chick", "A crow is a clever black bird."),
    "mouse": ("squeak", "in a small hole", "seeds and cheese", "pup", "A mouse is a very small animal with a long tail."),
    "snake": ("hiss", "under stones and in the grass", "mice and eggs", "", "A snake is a long animal without legs."),
    "goose": ("honk", "by the water", "grass", "gosling", "A goose is a big water bird with a long neck."),
    "donkey": ("hee-haw", "in a stable", "grass and hay", "foal", "A donkey is an animal with long ears that can carry loads."),
    "elephant": ("toot", "in Africa and Asia", "leaves and grass", "calf", "An elephant is the biggest animal on land, and it has a long trunk."),
    "monkey": ("oo oo ah ah", "in the trees of the jungle", "fruit and leaves", "baby monkey", "A monkey is a clever animal that climbs in trees."),
    "fox": ("", "in a den in the forest", "mice and berries", "cub", "A fox is a clever wild animal with a bushy tail."),
    "rabbit": ("", "in a burrow under the ground", "grass and carrots", "kit", "A rabbit is a small animal with long ears which hops."),
    "bear": ("growl", "in the forest", "berries, fish and honey", "cub", "A bear is a big strong animal that sleeps through the winter."),
    "squirrel": ("", "in a tree", "nuts and seeds", "kit", "A squirrel is a small animal which hides nuts for the winter."),
    "hedgehog": ("", "under hedges and leaves", "insects and worms", "hoglet", "A hedgehog is a small animal with spines, and it rolls up into a ball."),
    "penguin": ("", "in the cold south", "fish", "chick", "A penguin is a bird which cannot fly, but it swims very well."),
    "polar bear": ("growl", "in the Arctic", "seals and fish", "cub", "A polar bear is a white bear that lives in the ice and snow."),
    "whale": ("", "in the sea", "small fish and krill", "calf", "A whale is the biggest animal in the sea, and it breathes air."),
    "dolphin": ("click click", "in the sea", "fish", "calf", "A dolphin is a clever sea animal that likes to jump."),
    "shark": ("", "in the sea", "fish", "pup", "A shark is a big fish with many sharp teeth."),
    "fish": ("", "in the water", "water plants and small animals", "", "A fish is an animal that lives in water and breathes with gills."),
    "crab": ("", "on the beach and in the sea", "small animals and plants", "", "A crab is an animal with a hard shell and two claws, and it walks sideways."),
    "octopus": ("", "in the sea", "crabs and fish", "", "An octopus is a sea animal with eight arms."),
    "turtle": ("", "in the sea or on land", "plants and jellyfish", "hatchling", "A turtle is a slow animal which carries its house on its back."),
    "snail": ("", "in the garden", "leaves", "", "A snail is a very slow animal with a shell on its back."),
    "spider": ("", "in a web", "flies", "spiderling", "A spider is a small animal with eight legs that spins a web."),
    "ant": ("", "in an anthill", "seeds and sweet things", "", "An ant is a tiny insect that is very strong and works with many others."),
    "butterfly": ("", "in gardens and meadows", "nectar from flowers", "caterpillar", "A butterfly is an insect with colourful wings which was a caterpillar before."),
    "giraffe": ("", "on the grasslands of Africa", "leaves", "calf", "A giraffe is the tallest animal, and it has a very long neck."),
    "zebra": ("", "on the grasslands of Africa", "grass", "foal", "A zebra looks like a horse with black and white stripes."),
    "hippo": ("", "in the rivers of Africa", "grass", "calf", "A hippo is a heavy animal that likes to stay in the water."),
    "camel": ("", "in the desert", "dry plants", "calf", "A camel is an animal with one or two humps which needs little water."),
    "kangaroo": ("", "in Australia", "grass", "joey", "A kangaroo is an animal that hops and carries its baby in a pouch."),
    "koala": ("", "in the trees of Australia", "eucalyptus leaves", "joey", "A koala is a furry animal which sleeps most of the day."),
    "panda": ("", "in the mountains of China", "bamboo", "cub", "A panda is a black and white bear which eats bamboo."),
    "parrot": ("squawk", "in the jungle", "fruit and seeds", "chick", "A parrot is a colourful bird which can learn words."),
    "crocodile": ("", "in rivers", "fish and meat", "hatchling", "A crocodile is a big animal with a long mouth full of teeth."),
    "bat": ("squeak", "in a cave", "insects", "pup", "A bat is an animal that flies at night and sleeps upside down."),
    "mole": ("", "under the ground", "worms", "pup", "A mole is a small animal that digs tunnels and sees badly."),
    "beaver": ("", "in a lodge in the river", "bark and leaves", "kit", "A beaver is an animal with strong teeth that builds dams."),
    "deer": ("", "in the forest", "grass and leaves", "fawn", "A deer is a shy forest animal, and the male has antlers."),
    "eagle": ("screech", "in the mountains", "fish and small animals", "eaglet", "An eagle is a big bird that sees very well."),
    "swan": ("", "on a lake", "water plants", "cygnet", "A swan is a big white bird with a long neck."),
    "seal": ("bark", "by the cold sea", "fish", "pup", "A seal is a sea animal with flippers that rests on the beach."),
}

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()

SEASONS = [
    (f"[Which season comes after {a}?|What season comes after {a}?|What comes after {a}?|What is the season after {a}?|Which season follows {a}?|The season after {a}?|What comes right after {a}?]", f"[After {a} comes {b}.|{b} comes after {a}.|{b}.]", b)
    for a, b in (("spring", "summer"), ("summer", "autumn"), ("autumn", "winter"), ("winter", "spring"))
] + [
    ("[Which season is the coldest?|What is the coldest season?|When does it snow?|When is it cold?|In which season does it snow?|In which season is it cold?|When is it the coldest?|When do we have snow?]", "[Winter is the coldest season.|It is cold in winter, and it often snows.]", "winter"),
    ("[Which season is the warmest?|What is the hottest season?|When is it hot?|When is it warm?|In which season is it hot?|In which season is it warm?|When is it the warmest?|What is the warmest season?]", "[Summer is the warmest season.|It is hot in summer.]", "summer"),
    ("[When do the leaves fall?|In which season do the leaves fall?|When do the leaves turn yellow?|In what season do the leaves fall?]", "[The leaves fall in autumn.|In autumn the leaves turn yellow and fall.]", "autumn"),
    ("[When do the flowers come out?|In which season do the flowers begin to grow?|When do birds build their nests?|In which season do birds build their nests?|In which season do the flowers come out?|When do the flowers begin to grow?]", "[In spring.|That happens in spring.]", "spring"),
    ("[What is your favourite season?|Which season do you like?]", "[I like spring, because everything begins to grow.|I like autumn, because the leaves are so colourful.]", ""),
]

SHAPES = [
    ("[How many sides does a triangle have?|How many corners does a triangle have?]", "[A triangle has three sides and three corners.|Three.]", "three"),
    ("[How many sides does a square have?|How many corners does a square have?]", "[A square has four equal sides and four corners.|Four.]", "four"),
    ("[How many sides does a rectangle have?]", "A rectangle has four sides.", "four"),
    ("[How many sides does a pentagon have?]", "A pentagon has five sides.", "five"),
    ("[How many sides does a hexagon have?]", "A hexagon has six sides.", "six"),
    ("[How many sides does an octagon have?]", "An octagon has eight sides.", "eight"),
    ("[How many corners does a circle have?|Does a circle have corners?]", "[A circle has no corners.|A circle is round and has no corners.]", "no"),
    ("[What shape is a ball?|What is the shape of a ball?]", "[A ball is round. The shape is called a sphere.|A ball is a sphere.]", "sphere"),
    ("[What shape is a wheel?|What shape is a coin?|What shape is a plate?]", "[It is round, like a circle.|It is a circle.]", "circle"),
    ("[What shape is a dice?|What shape is a box?]", "[It has the shape of a cube.|It is a cube.]", "cube"),
    ("[What is a triangle?]", "A triangle is a shape with three sides and three corners.", "three"),
    ("[What is a square?]", "A square is a shape with four equal sides.", "four"),
    ("[What is a circle?]", "A circle is a round shape without corners.", "round"),
    ("[Name three shapes.|Tell me some shapes.]", "[Circle, square and triangle.|Three shapes are a circle, a square and a triangle.]", "circle"),
]

BODY = [
    ("eyes", "see", "two"), ("ears", "hear", "two"), ("nose", "smell and breathe", ""), ("hands", "hold things", "two"),
    ("feet", "stand and walk", "two"), ("legs", "walk and run", "two"), ("teeth", "bite and chew", ""), ("tongue", "taste and speak", ""),
    ("mouth", "eat and speak", ""), ("fingers", "touch and grab things", "ten"), ("brain", "think", ""), ("lungs", "breathe", "two"),
    ("arms", "carry and hug", "two"), ("stomach", "digest food", ""), ("skin", "feel warm and cold", ""), ("toes", "keep our balance", "ten"),
    ("heart", "pump blood through the body", ""), ("knees", "bend our legs", "two"),
]

USES = {
    "key": "open a lock", "umbrella": "stay dry in the rain", "spoon": "eat soup", "knife": "cut things", "fork": "pick up food",
    "cup": "drink tea", "broom": "sweep the floor", "hammer": "drive nails into wood", "saw": "cut wood", "pen": "write",
    "pencil": "write and draw", "book": "read", "bed": "sleep", "chair": "sit", "lamp": "make light", "clock": "tell the time",
    "telephone": "talk to people far away", "bicycle": "ride around", "boat": "travel on water", "car": "drive from place to place",
    "train": "travel on rails", "airplane": "fly through the air", "ladder": "climb up high", "scissors": "cut paper",
    "needle": "sew clothes", "soap": "wash your hands", "towel": "dry yourself", "toothbrush": "clean your teeth", "comb": "tidy your hair",
    "mirror": "see yourself", "oven": "bake bread", "fridge": "keep food cold", "pot": "cook soup", "bag": "carry things",
    "bridge": "cross a river", "rope": "tie things", "map": "find the way", "compass": "find north", "telescope": "look at the stars",
    "thermometer": "measure how warm it is", "ruler": "measure how long something is", "bucket": "carry water", "shovel": "dig a hole",
    "net": "catch fish", "tent": "sleep outdoors", "camera": "take pictures", "bell": "ring", "drum": "make music", "violin": "play music",
    "piano": "play music", "ball": "play games", "kite": "play in the wind", "sled": "slide down a snowy hill", "blanket": "keep warm",
    "coat": "keep warm", "hat": "keep your head warm", "shoe": "protect your foot", "glove": "keep your hand warm", "window": "let in light",
    "door": "go in and out", "computer": "work with words, numbers and pictures", "candle": "make light", "match": "light a fire",
    "wheel": "make things roll", "button": "close a shirt", "basket": "carry fruit", "stamp": "send a letter", "sail": "catch the wind",
    "anchor": "keep a ship in its place", "oar": "row a boat",
}

MATERIALS = {
    "bread": "flour, water and yeast", "butter": "cream", "cheese": "milk", "a window": "glass", "paper": "wood", "a table": "wood",
    "a book": "paper", "a tyre": "rubber", "a sweater": "wool", "a coin": "metal", "a nail": "iron", "a bottle": "glass or plastic",
    "a brick": "clay", "a candle": "wax", "chocolate": "cocoa, milk and sugar", "honey": "the nectar of flowers", "a shoe": "leather or cloth",
    "a snowman": "snow", "a sandcastle": "wet sand", "a key": "metal", "a pencil": "wood and graphite", "a cloud": "tiny drops of water",
    "ice": "frozen water", "a wall": "stones or bricks", "a T-shirt": "cotton", "wine": "grapes", "juice": "fruit", "a pancake": "flour, milk and eggs",
    "an omelette": "eggs", "a spoon": "metal or wood", "a ring": "gold or silver", "a boat": "wood, metal or plastic", "a cake": "flour, sugar, butter and eggs",
    "a cup": "clay or glass", "jam": "fruit and sugar", "pasta": "flour and water", "a nest": "twigs and grass", "a rope": "hemp or nylon",
    "a salad": "leaves and vegetables", "popcorn": "corn",
}

KINDS_OF_THING = {
    "fruit": "an apple|a pear|a banana|a cherry|a plum|an orange|a lemon|a grape|a peach|a strawberry|a mango|a melon".split("|"),
    "vegetable": "a carrot|a potato|a cabbage|an onion|a cucumber|a leek|a radish|broccoli|spinach|a turnip".split("|"),
    "animal": "a dog|a horse|a whale|a lion|a cow|a rabbit|a mouse|an elephant|a wolf|a bear".split("|"),
    "bird": "an owl|a sparrow|a crow|a robin|an eagle|a swan|a penguin|a parrot|a duck|a goose".split("|"),
    "insect": "an ant|a bee|a butterfly|a fly|a ladybug|a beetle|a mosquito".split("|"),
    "flower": "a rose|a tulip|a daisy|a lily|a violet|a sunflower".split("|"),
    "tree": "an oak|a pine|a birch|a willow|a maple|a palm".split("|"),
    "tool": "a hammer|a saw|a screwdriver|a wrench|a shovel|a drill".split("|"),
    "musical instrument": "a violin|a piano|a drum|a flute|a guitar|a trumpet|a harp".split("|"),
    "colour": "red|blue|green|yellow|purple|orange|brown".split("|"),
    "vehicle": "a car|a bus|a train|a bicycle|a truck|a tram|a motorcycle".split("|"),
    "drink": "water|milk|tea|coffee|juice|lemonade".split("|"),
    "planet": "the Earth|Mars|Venus|Jupiter|Saturn|Mercury|Neptune|Uranus".split("|"),
    "piece of furniture": "a chair|a table|a bed|a sofa|a wardrobe|a desk".split("|"),
    "piece of clothing": "a shirt|a coat|a scarf|a hat|a sock|a skirt|a glove".split("|"),
    "day of the week": DAYS,
    "month": MONTHS,
}

WHY = [
    ("[Why is the sky blue?|How come the sky is blue?|Why is the sky blue in the day?]", "[The air scatters the blue part of the sunlight more than the other colours, so the sky looks blue.|Because the air scatters blue light more than red light.]"),
    ("[Why does it rain?|Where does rain come from?|What is rain?]", "[Water rises from the sea as vapour, forms clouds, and falls down again as rain.|Clouds are made of tiny drops. When the drops become heavy, they fall as rain.]"),
    ("[Why is it dark at night?|Why does it get dark?|Why is there night?]", "[The Earth turns, and at night our side looks away from the sun.|Because the Earth turns away from the sun.]"),
    ("[Why do we sleep?|Why do people sleep?|Why do I have to sleep?]", "[Sleep lets the body rest and the brain sort out the day.|We sleep so that body and brain can rest.]"),
    ("[Why do leaves fall in autumn?|Why do trees lose their leaves?]", "[Trees drop their leaves to save water in the winter.|In winter there is little light and water, so the tree lets its leaves go.]"),
    ("[Why do birds sing?|Why does a bird sing?]", "[Birds sing to find a partner and to say that this is their place.|They sing to call other birds and to mark their home.]"),
    ("[Why do birds fly south?|Where do birds go in winter?]", "[Many birds fly south in winter because they find more food there.|They fly to warm countries, where there is enough food.]"),
    ("[What is a rainbow?|How does a rainbow form?|Where does a rainbow come from?]", "[A rainbow appears when sunlight shines through drops of rain.|Sunlight is split into its colours by drops of rain. That is a rainbow.]"),
    ("[What is the sun?|Is the sun a star?]", "[The sun is a star. It gives us light and warmth.|The sun is the star which our Earth goes around.]"),
    ("[What is the moon?|Tell me about the moon.]", "[The moon is a ball of rock that goes around the Earth.|The moon goes around the Earth and shines with the light of the sun.]"),
    ("[What is the Earth?|Tell me about the Earth.]", "[The Earth is the planet on which we live.|The Earth is a round planet that goes around the sun once a year.]"),
    ("[How many planets are there?|How many planets go around the sun?]", "[There are eight planets.|Eight planets go around the sun.]"),
    ("[What is the biggest planet?|Which planet is the biggest?]", "[Jupiter is the biggest planet.|The biggest planet is Jupiter.]"),
    ("[What is the biggest animal?|Which animal is the biggest?]", "[The blue whale is the biggest animal.|The biggest animal of all is the blue whale.]"),
    ("[What is the tallest animal?|Which animal is the tallest?]", "[The giraffe is the tallest animal.|The tallest animal is the giraffe.]"),
    ("[What is the fastest animal?|Which animal is the fastest?|Which animal runs fastest?]", "[The cheetah is the fastest animal on land.|On land it is the cheetah.]"),
    ("[What is snow?|What is snow made of?|Where does snow come from?]", "[Snow is frozen water that falls from the clouds.|Snow is made of tiny crystals of ice.]"),
    ("[What is ice?|What happens when water freezes?]", "[Ice is frozen water.|When water gets very cold, it freezes and turns into ice.]"),
    ("[What is wind?|What makes the wind?|Where does wind come from?]", "[Wind is moving air.|Wind is air that moves from one place to another.]"),
    ("[What is a cloud?|What are clouds?]", "[A cloud is made of many tiny drops of water.|Clouds are tiny drops of water that float in the air.]"),
    ("[What is thunder?|Why does it thunder?|What is lightning?]", "[Lightning is a huge electric spark, and thunder is its sound.|Thunder is the sound of lightning.]"),
    ("[Why do we eat?|Why do we need food?]", "[Food gives us energy and helps us grow.|We eat because the body needs energy.]"),
    ("[Why do we drink water?|Why do we need water?]", "[The body is mostly water, so we have to drink.|Without water the body cannot work.]"),
    ("[What do plants need?|What does a plant need to grow?|How do plants grow?]", "[Plants need light, water, air and earth.|A plant needs water, light and good earth.]"),
    ("[Can fish breathe under water?|How do fish breathe?]", "[Yes, fish breathe under water with their gills.|Fish breathe with gills.]"),
    ("[Can penguins fly?|Do penguins fly?]", "[No, penguins cannot fly, but they swim very well.|No. A penguin is a bird which swims.]"),
    ("[Can dogs fly?|Can a pig fly?|Can cows fly?]", "[No, it cannot fly. It has no wings.|No, only in stories.]"),
    ("[What is the biggest ocean?|Which ocean is the biggest?]", "[The Pacific is the biggest ocean.|The biggest ocean is the Pacific.]"),
    ("[What is the highest mountain?|Which mountain is the highest?]", "[Mount Everest is the highest mountain.|The highest mountain is Mount Everest.]"),
    ("[How many legs does a spider have?|How many legs has a spider?]", "[A spider has eight legs.|Eight.]"),
    ("[How many legs does an insect have?|How many legs does an ant have?|How many legs does a bee have?]", "[It has six legs.|Insects have six legs.]"),
    ("[How many legs does a dog have?|How many legs does a cat have?|How many legs does a horse have?]", "[It has four legs.|Four.]"),
    ("[How many wheels does a car have?|How many wheels has a car?]", "[A car has four wheels.|Four.]"),
    ("[How many wheels does a bicycle have?]", "[A bicycle has two wheels.|Two.]"),
    ("[How many letters are in the alphabet?|How many letters does the alphabet have?]", "[The English alphabet has 26 letters.|There are 26 letters.]"),
    ("[Say the alphabet.|What is the alphabet?|Tell me the alphabet.]", "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z."),
    ("[What do bees make?|Who makes honey?]", "[Bees make honey.|Honey is made by bees.]"),
    ("[Where does milk come from?|Who gives us milk?]", "[Milk comes from cows.|Cows give us milk.]"),
    ("[Where do eggs come from?|Who lays eggs?]", "[Eggs come from hens.|Hens lay eggs, and so do all other birds.]"),
    ("[What do you get when you mix blue and yellow?|What colour do blue and yellow make?]", "Blue and yellow make green."),
    ("[What do you get when you mix red and yellow?|What colour do red and yellow make?]", "Red and yellow make orange."),
    ("[What do you get when you mix red and blue?|What colour do red and blue make?]", "Red and blue make purple."),
    ("[What do you get when you mix black and white?|What colour do black and white make?]", "Black and white make grey."),
    ("[What are the colours of the rainbow?|Which colours does a rainbow have?]", "Red, orange, yellow, green, blue, indigo and violet."),
    ("[Where does the sun rise?|Where does the sun come up?]", "The sun rises in the east."),
    ("[Where does the sun set?|Where does the sun go down?]", "The sun sets in the west."),
    ("[What is friendship?|What is a friend?]", "[A friend is someone who likes you and helps you.|A friend is a person you like and trust.]"),
    ("[How do I make a friend?|How can I find friends?]", "[Say hello, listen well, and be kind.|Be kind, share something, and ask the other about their day.]"),
    ("[I cannot sleep.|I can't sleep.|What can I do when I cannot sleep?]", "[Close your eyes, breathe slowly, and count sheep.|Try to breathe slowly and think of a quiet place. I can also tell you a bedtime story.]"),
    ("[How do I bake a cake?|How do you make a cake?]", "Mix flour, sugar, butter and eggs, put it into a form, and bake it in the oven until it is golden."),
    ("[How do I make tea?|How do you make tea?]", "Boil some water, pour it over the tea leaves, and wait a few minutes."),
    ("[How do I build a snowman?|How do you make a snowman?]", "Roll three big balls of snow, put them on top of each other, and give it a carrot for a nose."),
    ("[What is love?]", "Love is a warm feeling for someone who is dear to you."),
    ("[What is music?]", "Music is sound that is put in order so that it is nice to hear."),
    ("[What is a book?]", "A book is many pages of paper with words or pictures on them."),
]
