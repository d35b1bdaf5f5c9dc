"""Plots of stories: a wish, an obstacle, a helper and an ending, as beats with alternatives.

Fields: {N} the hero's name, {k} the hero's kind, {he} {him} {his}; {F} {fk} {fhe} {fhis} {fhim} the
friend; {p} the place with its preposition, {place} the bare place; {t} a thing, {c} its colour;
{hide} a hiding spot; {food}, {skill}, {slip}, {fear}, {truth}, {did}, {fun} as in the word lists.
"""
# ruff: noqa: E501  (a beat is one line)

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plot:
    """The plot of a story: beats of text, and answers to questions that are asked afterwards."""

    theme: str  # what the story is about, as in "a story about ..."
    uses: str  # the slot that a request may fill: thing, food, skill, fear, weather or nothing
    want: str
    trouble: str
    helped: str
    lesson: str
    beats: tuple[str, ...]


PLOTS: tuple[Plot, ...] = (
    Plot(
        "losing something|something lost|looking for a lost thing",
        "thing",
        "to find the {c} {t}",
        "the {c} {t} was gone",
        "{F} found the {t} {hide}",
        "two pairs of eyes see more than one",
        (
            "[{N} had a {c} {t} and took it everywhere|{N} loved one thing most of all: a {c} {t}|{N} owned a {c} {t}, and {he} was very proud of it].",
            "[But one {morning} the {t} was gone|One {morning}, {N} could not find the {t}|Then one {morning} the {c} {t} was not there].",
            "{N} looked [under the bed and behind the door|here and there and everywhere|in every corner], but {he} [could not find it|found nothing at all|had no luck].",
            "[{He} sat down and cried|{He} felt very sad|A big tear rolled down {his} face].",
            '[A {a} {fk} named {F} heard {him}|Just then a {a} {fk} named {F} came by]. "[Why are you so sad|What is the matter]?" asked {F}. "[I lost my {t}|My {c} {t} is gone]," said {N}.',
            '"[Do not worry|Do not cry]," said {F}. "[I will help you look|We will find it together]." [They searched all {day}|They looked high and low|They walked up and down together].',
            "[At last|In the end|After a long while], {F} [saw something {c}|spotted it] {hide}. [It was the {t}|There was the {c} {t}]!",
            '[{N} jumped for joy|{N} laughed and hugged {F}|{N} was so glad]. "Thank you," {he} said. "[Two pairs of eyes see more than one|You are a real friend]."',
        ),
    ),
    Plot(
        "reaching something high|a thing that was too high",
        "thing",
        "to get the {c} {t} down from a tree",
        "the {t} hung too high in a tree",
        "{F} let {N} climb on {fhis} back",
        "together we are taller",
        (
            "[One {morning}|One day], {N} saw a {c} {t} [high up in a tree|hanging on a high branch]. [The wind had blown it there|Nobody knew how it got there].",
            '"[I want that {t}|How I would like to have it]," [said|thought] {N}. {He} [jumped and jumped|stretched as far as {he} could|tried to climb the tree], but it was too high.',
            "{N} [threw a stick|shook the tree|pushed a box under the tree and stood on it], but the {t} [did not move|stayed where it was].",
            '[Soon|Then] a {a} {fk} named {F} came along. "[Can I help you|What are you doing]?" asked {F}. {N} [pointed at the {t}|told {fhim} about the {t}].',
            '"[Climb on my back|Stand on my back]," said {F}. [So {N} climbed up|{N} climbed up carefully], [higher and higher|as high as {he} could].',
            "[Now {he} could reach it|One more stretch, and {he} had it]! The {c} {t} [came down safely|was theirs].",
            '[They played with the {t} all {day}|From then on they shared the {t}|They took turns with the {t} until evening]. "[Together we are taller|Together we can reach anything]," said {N}.',
        ),
    ),
    Plot(
        "being brave|courage|fear|being afraid",
        "fear",
        "to stop being afraid of {fear}",
        "{he} was afraid of {fear}",
        "{F} told {him} that {truth}",
        "being brave means trying although you are afraid",
        (
            "{N} was [a bit|very|terribly] afraid of {fear}. [When {he} only thought of it, {he} shook|It made {his} knees shake|{He} always hid when it was near].",
            "[The others laughed at {him}|{He} did not tell anybody|{He} wished {he} could be brave], and that made {him} [sad|feel small].",
            '[One {morning}|One evening], a {a} {fk} named {F} [sat down next to {him}|came to visit]. "[What is wrong|Why are you shaking]?" asked {F}. "I am afraid of {fear}," [whispered|said] {N}.',
            '"[I was afraid too, once|That is nothing to be ashamed of]," said {F}. "[But I learned something|Let me tell you a secret]: {truth}."',
            "[{F} took {him} by the hand|They went together|They tried it together], [step by step|slowly, very slowly]. [{N} held {his} breath|{N}'s heart went boom, boom, boom].",
            "[And then nothing bad happened|Nothing bad happened at all]. [It was even a little fun|After a while {he} began to smile].",
            "[From that day on|Since then], {N} was not so afraid any more. {He} had learned that [being brave means trying although you are afraid|you can be afraid and brave at the same time].",
        ),
    ),
    Plot(
        "getting lost|finding the way home|going home",
        "",
        "to find the way home",
        "{he} was lost",
        "{F} showed {him} the way home",
        "it is good to ask for help when you are lost",
        (
            "[One {morning}|One day], {N} [followed a butterfly|went out for a walk|chased a falling leaf] and went [too far|farther than ever before].",
            "[When {he} looked around|When {he} stopped], [everything looked strange|{he} did not know where {he} was]. {N} was lost.",
            "[{He} went left and right|{He} walked this way and that way|{He} tried one path after the other], but [every path looked the same|no path led home]. [The sun went down|It was getting dark], and {N} [wanted to go home|began to cry].",
            '[Then {he} saw a light. It belonged to|Then {he} heard a voice. It was|Behind a bush sat] a {a} {fk} named {F}. "[Are you lost|Where do you want to go]?" asked {F}. "[I want to go home, but I do not know the way|Yes, I cannot find my home]," said {N}.',
            '"[I know every path here|I know the way]," said {F}. "[Come with me|Follow me]." [They walked under the stars|They went over a bridge and around a hill|They sang a song as they walked].',
            "[Soon {N} saw {his} own front door|At last they came to {N}'s home|There it was, {N}'s home]. [The window was bright and warm|Supper was on the table].",
            "[{N} gave {F} {food} to say thank you|{N} thanked {F} and asked {fhim} in for {food}]. [It is good to ask for help when you are lost|And next time, {N} did not go so far alone].",
        ),
    ),
    Plot(
        "learning something new|practice|not giving up|trying again",
        "skill",
        "to learn to {skill}",
        "{he} always {slip}",
        "{F} practised with {him} every day",
        "practice makes it better",
        (
            "[More than anything|Most of all], {N} wanted to {skill}. [All the others could do it|{He} dreamed of it every night].",
            "[So {he} tried|The first time {he} tried it], but {he} {slip}. [{He} tried again, and it was no better|The second time was even worse].",
            '"[I will never learn it|I cannot do it]," said {N} [and kicked a stone|with a sigh|and sat down in the grass].',
            'A {a} {fk} named {F} [had watched {him}|was sitting nearby]. "[Nobody can do it the first time|I fell a hundred times before I could do it]," said {F}. "[Let me show you.|Shall we practise together?|We can practise together.]"',
            "[So they practised every day|Day after day they practised|Every {morning} they met and practised], [in sun and rain|a little longer each time]. [Slowly it got better|And every day it went a little better].",
            "[Then one day|And at last], {N} could {skill}! [Everybody clapped|{F} cheered loudly|{N} could hardly believe it].",
            '"[You see|Well done]," said {F}. "[Practice makes it better|You did not give up]." [And {N} smiled from ear to ear|{N} was very proud].',
        ),
    ),
    Plot(
        "bad weather|building a home|helping each other|working together",
        "weather",
        "to have a dry and safe home again",
        "the {weather} broke {his} house",
        "{F} and the neighbours helped to build it up again",
        "many hands make light work",
        (
            "{N} had a small house {p}. [It was not big, but it was cosy|{He} had built it {him}self].",
            "[Then came the {weather}|One night the {weather} came]: {did}. [In the morning the house was broken|The little house fell down].",
            '"[Where shall I sleep now|Oh no, my house]!" cried {N}. {He} [began to build it up again|picked up the pieces], but [it was too much work for one|{he} was too tired].',
            '[A {a} {fk} named {F} came to look|The neighbour, a {a} {fk} named {F}, saw it]. "[You can sleep at my house tonight|Come in and eat some {food} first]," said {F}. "[And tomorrow we will all help|Then we will build it again together]."',
            "[The next day everybody came|The next day {F} called all the neighbours]. [One brought wood, one brought nails, and one brought {food}|Some carried wood, some held the ladder, and some sang].",
            "[By evening the new house was ready|Before the sun went down, the house was done]. [It was stronger than before|It was even better than the old one].",
            '"[How can I thank you|Thank you all]," said {N}. "[Many hands make light work|That is what friends are for]," [said {F}|answered {F} with a smile].',
        ),
    ),
    Plot(
        "the weather|a day outside|a boring day|having fun",
        "weather",
        "to play outside",
        "of the {weather}",
        "{F} had the idea to {fun}",
        "every kind of weather is good for something",
        (
            "[It was a {wadj} day|One {wadj} day, {N} looked out of the window]: {did}. {N} [wanted to play outside|had wanted to have a picnic], [but not in this weather|but now that did not work].",
            '"[What a boring day|I do not like this weather]," [said|sighed] {N}. {He} [sat at the window and sighed|walked up and down in the room].',
            '[Knock, knock! At the door stood|Then there was a knock at the door. It was] a {a} {fk} named {F}. "[Come out|Let us go outside]!" said {F}. "But look at the {weather}!" said {N}.',
            '"[That is the best part|Do you not know]?" said {F}. "[Today we can|This is just the right day to] {fun}!"',
            "[{N} was not sure, but {he} went along|So {N} went out]. [They laughed so much that they fell over|They played until their noses were red|They played for hours].",
            "[In the evening|When they came home], they [drank hot cocoa|ate warm {food}] [by the fire|in the kitchen]. [What a good day it had been|It had been the best day of the week]!",
            '"[Every kind of weather is good for something|I like this weather now]," said {N}.',
        ),
    ),
    Plot(
        "friendship|making a friend|being lonely|friends",
        "food",
        "to have a friend",
        "{he} was new there and too shy to speak",
        "{F} asked {him} to share the {food}",
        "a friend is found by saying hello",
        (
            "{N} was new {p} and [did not know anybody|had no friends yet]. [All day {he} played alone|In the evening {he} talked to the moon].",
            "[{He} saw the others play|{He} heard the others laugh], but {he} was [too shy to ask|afraid that they would say no].",
            "[One {morning}|One day], {N} [sat under a tree with|had a basket of] {food}. A {a} {fk} named {F} [sat down not far away|came by and looked hungry].",
            '{N} took a deep breath. "[Hello|Good day]," {he} said [very quietly|in a small voice]. "Would you like some {food}?"',
            '"[Oh yes, please|I would love to]," said {F}. "[I wanted to talk to you for days, but I was too shy|I was looking for someone to play with]." [Then they both laughed|{N} could not believe it].',
            "[They ate together and told each other stories|They shared the {food} and talked until it was dark]. [The next day they met again, and the day after that|From that day on they met every {morning}].",
            "Now {N} had a friend. [It had only taken one hello|A friend is found by saying hello].",
        ),
    ),
    Plot(
        "sharing|being kind|kindness|giving",
        "food",
        "to keep all the {food} for {him}self",
        "{he} did not want to share",
        "{F} shared a piece of bread with {him}",
        "what you share comes back to you",
        (
            '{N} had [a big basket of|found a lot of] {food}. "[This is all mine|I will not give any away]," {he} said [and hid the basket|and ate as fast as {he} could].',
            'A {a} {fk} named {F} came by. {FHe} was very hungry. "[May I have a little|Could you give me a bite]?" asked {F}. "No," said {N}. [{F} went away sadly|So {F} went away, hungry].',
            "[That night|Soon after], {N} [had a tummy ache|felt bad, and {he} could not sleep]. [In the morning it rained into the basket, and the rest was spoiled|In the morning the rest was gone, for the ants had eaten it].",
            "Now {N} had nothing, and {he} [was hungry too|became hungry]. [{He} was ashamed|{He} thought of {F}].",
            'Then {F} came back. {FHe} had found a small piece of bread. "[Half of it is for you|Let us share it]," said {F}. "[But I did not share with you!|Why are you so kind to me?]" said {N}.',
            '"[Sharing tastes better|It is nicer to eat together]," said {F}. [And so it was: it was the best bread that {N} had ever eaten|So they sat down and ate, and both were happy].',
            "[From then on, {N} shared everything|Since that day {N} never ate alone]. [What you share comes back to you|{He} had learned to share].",
        ),
    ),
    Plot(
        "a treasure|a map|an adventure|treasure",
        "thing",
        "to find the treasure",
        "the way was long and a big rock lay on the treasure",
        "{F} helped to push the rock away",
        "the best treasure is a friend to share it with",
        (
            "[One {morning}|One day], {N} found [an old map in a bottle|a map in an old book|a map under the floor]. A red cross showed [a treasure|where a treasure lay]!",
            "{N} [packed {food} and set off|took a bag and went at once]. [The way was long|{He} walked over hills and through a dark wood], and {his} feet [hurt|were tired].",
            "[At the red cross lay a big rock|The treasure was under a huge rock]. {N} pushed and pulled, but [the rock did not move|it was much too heavy].",
            'A {a} {fk} named {F} was [resting nearby|watching]. "[Why do you push that rock|What is under that rock]?" asked {F}. "[A treasure! If you help me, we will share it|There is a treasure under it]," said {N}.',
            "[They pushed together: one, two, three|Together they counted to three and pushed]! [The rock rolled away|Slowly the rock began to roll]. [Under it was a small box|There was a little chest in the hole].",
            "In it lay [only one thing: |]a {c} {t}. [It was not gold, but it was beautiful|It shone in the sun]. [They looked at each other and laughed|{N} smiled].",
            '"[We can share it, one day you and one day I|It belongs to both of us]," said {N}. [On the way home they knew that the best treasure was their friendship|And the best treasure was the new friend].',
        ),
    ),
    Plot(
        "a birthday|a surprise|a party|a present",
        "thing",
        "somebody to remember {his} birthday",
        "everybody seemed to have forgotten {his} birthday",
        "{F} had planned a party in secret",
        "good friends do not forget you",
        (
            "It was {N}'s birthday. {He} [woke up early|jumped out of bed] and [waited for {his} friends|was very excited].",
            "But nobody said happy birthday. [The neighbours only waved and hurried on|Everybody seemed to be busy]. [Had they all forgotten|Did nobody remember]?",
            '{N} went to {F}, a {a} {fk}. "[Do you know what day it is|Is today not a special day]?" asked {N}. "[I have no time|It is a day like any other]," said {F} [and shut the door|and hurried away].',
            "[Sadly {N} walked home|{N} sat alone {p} and felt very sad]. [It was the worst birthday ever, {he} thought|A tear fell on the ground].",
            '[When it got dark, {he} opened {his} door|In the evening {he} came home]. [Suddenly there was light everywhere|All at once many lights went on]. ["Surprise!" shouted everybody.|All {his} friends were there. "Surprise!" cried {F}.] [There was cake with candles|There was {food} and a big cake].',
            '{F} gave {him} a {c} {t}. "[I had to keep it a secret all day|I made it for you]," said {F}. "[We could never forget you|Happy birthday, dear {N}]!"',
            "{N} [laughed and cried at the same time|was the happiest {k} in the world]. [Good friends do not forget you|They danced until midnight].",
        ),
    ),
    Plot(
        "helping someone|saving someone|someone small who helps|being thankful",
        "",
        "to get free from a net",
        "{he} was caught in a net",
        "{F} bit the net with {fhis} teeth, because {N} had once helped {fhim}",
        "nobody is too small to help",
        (
            '[One {morning}|One day], {N} heard a small voice: "Help!" [A tiny {fk} had fallen into the water|A little {fk} was stuck in a hole|A very small {fk} had fallen into a pond]. It was {F}.',
            '{N} [held out a branch|reached down] and pulled {F} out. "[Thank you! One day I will help you too|You saved me. I will not forget it]," said {F}.',
            '"[You? You are so little|But you are so small]," laughed {N}, [and went on {his} way|and said goodbye].',
            "[Some days later|Weeks went by. Then], {N} [stepped into a net|walked into a trap and got caught in a net]. {He} [pulled and kicked|turned this way and that], but the net [only got tighter|did not open].",
            '"Help!" called {N}. [Who should come but little {F}|And who came running? It was {F}]! "[Stay still|Do not move]," said {F}, and {fhe} began to [bite|gnaw] at the net.',
            "[Bit by bit the ropes broke|One rope broke, then the next]. [Soon {N} was free|At last the net fell open].",
            '"[I am sorry that I laughed|You were right]," said {N}. "[Nobody is too small to help|A small friend can be a great friend]."',
        ),
    ),
    Plot(
        "a race|winning and losing|a contest",
        "",
        "to win the race",
        "{he} was slower than {F}",
        "{F} fell asleep under a tree, and {N} kept walking",
        "slow and steady wins the race",
        (
            "[Every year there was a big race {p}|There was going to be a race {p}]. {N} wanted to win it [more than anything|very much].",
            'But there was also {F}, a {fk}, who was [very fast|the fastest of all]. "[You will never win against me|You are much too slow]," [said|laughed] {F}.',
            "[Ready, steady, go|One, two, three, go]! {F} ran like the wind. {N} was [soon the last one|far behind], but {he} [went on, step by step|did not stop].",
            '{F} looked back and saw nobody. "[I have time for a nap|I can rest a little]," {fhe} said, lay down under a tree and [fell asleep|began to snore].',
            "{N} [came to the tree|saw {F} asleep] and walked by, [quietly|on and on]. [When {F} woke up, it was evening|When {F} opened {fhis} eyes, it was too late]. {FHe} ran and ran.",
            "But {N} was [already at the finish|the first to cross the line]! [Everybody cheered|The others threw their hats into the air].",
            '"[You have won, and I was too proud|Well done]," said {F}. "[Slow and steady wins the race|I will never laugh at you again]." [And they shook hands|And they ate {food} together].',
        ),
    ),
    Plot(
        "honesty|telling the truth|a mistake|saying sorry|breaking something",
        "thing",
        "not to be found out",
        "{he} had broken {F}'s {t}",
        "{F} forgave {him} when {he} told the truth",
        "telling the truth feels better than hiding it",
        (
            "{N} had a neighbour, a {a} {fk} named {F}. {F} owned a {c} {t} and [loved it very much|kept it on the window].",
            "[One {morning}|One day], {N} [wanted to look at the {t} and dropped it|played with it, although {he} was not allowed to]. Crack! The {t} was broken.",
            "[{N} was scared|{N}'s face turned hot]. {He} hid the pieces {hide} and [ran home|said nothing].",
            '[Soon {F} came|The next day {F} asked], "Have you seen my {t}?" "No," said {N}. But [that no felt like a stone in {his} tummy|{he} could not look {fhim} in the eye].',
            '[That night {N} could not sleep|{N} could not eat and could not sleep]. [In the morning|At last] {he} went to {F} and said, "[I broke your {t}, and I hid it. I am very sorry|It was me. I broke it, and I am sorry]."',
            '{F} was quiet for a while. "[I am sad about the {t}|That was not nice]," {fhe} said, "[but it was brave to tell me|but I am glad that you told the truth]."',
            "[Then they mended the {t} together with glue|Together they mended it, and it was almost like new]. {N} felt [light as a feather|much better]. [Telling the truth feels better than hiding it|And that night {he} slept very well].",
        ),
    ),
    Plot(
        "a garden|a seed|waiting|being patient|patience|growing things",
        "food",
        "to see the seed grow",
        "nothing came out of the earth",
        "{F} told {him} to give it water and time",
        "good things need time",
        (
            "[One {morning} in spring|One day in spring], {N} [found a tiny seed|got a little seed as a gift]. {He} put it into the earth {p} and [gave it water|covered it well].",
            "[The next day {he} looked: nothing|Every day {he} went to look, but there was nothing]. [{He} shouted at the earth|{He} sang to it. {He} even danced]. Still nothing.",
            '"[This seed is no good|I will dig it up]," said {N}. "[Stop|Wait]!" called {F}, a {a} {fk}. "[A seed needs water, sun and time|It is sleeping. You must be patient]."',
            "So {N} waited. [It rained, and the sun shone, and it rained again|Days went by, and then weeks]. [{F} came often and waited too|{F} told {him} stories, so that the time passed quickly].",
            "[Then one {morning}|And one {morning}] there was [a tiny green leaf|something green]! [It grew and grew|Each day it was a bit taller], [up to {N}'s knee and then over {his} head|until it was taller than {N}].",
            "[In summer it had flowers, and in autumn|By autumn] it gave them [more {food} than they could eat|so many good things to eat]. They [had a feast|invited everybody].",
            '"[Good things need time|It was worth the wait]," said {N}, [and kept one seed for the next spring|and {F} nodded].',
        ),
    ),
    Plot(
        "sleep|bedtime|the night|a dream|not being able to sleep",
        "",
        "to fall asleep",
        "{he} could not sleep",
        "{F} told {him} to count the stars",
        "a calm heart falls asleep by itself",
        (
            "It was night {p}, and [everybody was asleep|the moon was up]. Only {N} was [awake|still awake].",
            "{N} turned [to the left and to the right|over and over]. [{He} drank some water|{He} closed {his} eyes very tightly], but sleep [did not come|would not come].",
            '[So {he} went outside|{He} got up and looked out]. On [a branch|the fence|a stone] sat a {a} {fk} named {F}. "[Should you not be in bed|Why are you awake]?" asked {F}. "I cannot sleep," said {N}.',
            '"[Then let us count the stars|I know what helps. Look up and count the stars]," said {F}. [They lay down in the soft grass|{N} lay down next to {fhim}].',
            '"One, two, three, four," counted {N}. [A soft wind sang in the trees|Far away an owl called]. "Five, six, seven." {His} voice [became slower and slower|got quieter and quieter].',
            '[At ten, {his} eyes fell shut|{He} never got to ten]. [{F} carried {him} to bed|{F} covered {him} with a blanket] [and whispered, "Good night, {N}."|and went away on soft feet.]',
            "[{N} dreamed of flying among the stars|{N} slept until the sun came up]. [A calm heart falls asleep by itself|And in the morning {he} felt wonderful].",
        ),
    ),
)
