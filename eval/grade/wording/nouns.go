package wording

import "strings"

// Words that may follow a value without changing it. Any other word makes a verdict unsure: it could negate the
// value, add an alternative or be a part of the calculation.

// counted is the plural of what answers count; a word of a measure is in units.
const counted = `
accessories aces acorns acres activities actors addresses administrators ads adults aircraft airplanes albums aliens
alligators almonds alpacas amoebas amperes angles animals antacids ants apartments appearances appetizers apples
applications appointments apps aprons aquariums arcs areas arenas ares arms arrangements arrows artichokes articles
artifacts artworks asparagus assignments asteroids asymptotes athletes atoms attempts attendees audiobooks aunts
avocados awards axes babies backpacks badges bagels baggies bags baguettes bales balloons balls bananas bandages bands
banks barrels bars baseballs bases basketballs baskets batches bathrooms baths bats batteries beaches beads beakers
beans bears beats beavers bedbugs bedrooms beds bees beetles beignets belts benches berries bicycles bids bijections
bikes billboards bills binders biographies birdhouses birds biscuits bison bites bits blackbirds blankets blanks
blisters blocks blondies blouses blueberries blues boards boats bollards bolts bones bonnets books bookshelves
bottlecaps bottles bounces bouquets bowls boxcars boxes boxwoods boys bracelets braids branches breads breaks bricks
brochures brothers brownies browns browsers bubbles buckets bugs builders buildings bulbs bunches bundles bunnies buns
burgers burritos burrs buses bushels bushes businesses butchers butter butterflies buttons buyers bytes cabinets cages
cakes calculators calls calories camels cameras campers candidates candies candles canes cannolis canoes cans
cantaloupes caps capsules captains caramels cardinals cards carnations carpenters carpets carriages carrots cars
cartons cases castles
categories caterpillars cats cattle ceilings cells centers centimeters cents chairs champions channels chapters
characters charges checkpoints cheerleaders cheesecakes cheeses cheetahs chefs cherries chests chickens chicks
children chimes chimichangas chips chocolate chocolates chords chores circles citations cities citizens claims clamps
clarinets classes classmates classrooms claws clerks clients cliffs clippings clips cloth clothes clotheslines clouds
clovers cloves clowns clubs clusters coaches coals coats cobs coconuts codes coefficients coffee coffees coins collars
collectors colorings colors columns combinations comes committees companies competitions complaints components
computers conditions cones configurations consonants constants constraints contacts containers contestants cookies
coolers coordinates copies corners corns costs cougars counters counties countries couples coupons courses cousins
covers cows crabs crackers crafts cranberries cranes craters crates crayons creams creatures credits crickets
croissants crops croutons crows crunches cubelets cubs cucumbers cupcakes cups curlers curries curves customers cuts
cuttlebones cycles cyclists daisies dancers dandelions darts dates daughters days decagons decimeters decks
decorations deer degrees delegates deliveries demerits desks desserts devices diagonals diamonds diapers diaries dice
digits dimensions dimes dinners dinosaurs directions discounts dishes distances divisors doctors dogs dollars dolls
dolphins dominoes donations donuts doors doses dots doubles doughnuts doves downloads dragons drams drawings draws
dreams dresses drinks drivers driveways drummers drums dryers ducklings ducks dumplings earnings earrings ears eaters
edges eggplants eggs elements elephants elves emails employees emus enchiladas enclosures endpoints ends enemies
engineers engines entrees entries envelopes episodes equations erasers errors espressos essays euros exams expenses
expressions extras extrema eyes fabric faces factors facts fairies families fans farmhands farms farthings fathoms
feathers feedings fees feet females fences ferns fields figures figurines files filets fillets fillings fingernails
fingers firecrackers fireflies fires fireworks fish fishes flags flamingos flashlights flats flavors fleas flecks
flies flights flips floats floors flour flowerbeds flowers fluid flutes flyers folders foldings followers food
footballs footprints forces forks forms foxes frames francs friends fries frisbees frogs fronds fruits fuel functions
furlongs furniture galaxies galleries gallons games gardenias gardens gasoline gates gears geckos geese gems gemstones
geraniums gifts gigabytes gills gingerbreads giraffes girls glasses gnomes goals goats gold goldfishes graders grades
grains grammes grams granddaughters grapes graphs grasshoppers groceries groups guards guests guides guitars gumballs
guns guppies haircuts hairs halls hamburgers hamsters hands handshakes hangers harbors hares hats hawks heads hearts
hectares heights helmets hens hertz hexagons highlighters hikes hills hippos hives hogs holes homes homework honeydews
hoodies hoots hops horns horses horseshoes hoses hospitals hotdogs hours households houses humps hushpuppies huskies
inches individuals inequalities ingredients inhabitants insects installments instances instructions instruments
integers intercepts intersections intervals invitations islands issues items jackets jacks jars jays jeans jellybeans
jerseys jewels jobs joggers jokes joules jugs juice juices jumps juniors kangaroos kelvins kernels kettles keys kids
kilobytes kilograms kilometers kilos kilowatts kindergartners kinds kings kitchens kits kittens kiwis knights knives
koalas ladders ladies ladybugs lambs lamps land lanes lanterns laps laptops lattes lawns lawyers layers layoffs
leagues leaves legos legs lemmas lemonade lemons lengths lens leopards lessons letters levels licks lids lightbulbs
lighters lights lightyears lilies limes lines links lions listens lists liters litres lives lizards llamas loads
loaves locations lollipops lovers lunches macarons macaroons machines magazines maggots magnets mails males managers
mangoes mangos marbles marigolds markers marks marshmallows masks matchboxes matches matchsticks materials mathematics
matrices maxima meals meatballs medals medians meerkats megabits megabytes melons members memos men meows messages
meters methods metres mice microphones miles milk milkshakes milligrams milliliters millimeters million millipedes
minima minks minnows minutes mirrors models moles money monitors monkeys monsters months moose motorcycles mountains
moves movies muffins mugs multiples mushrooms musicians nails napkins necklaces neighborhoods neighbors nephews
newspapers newtons nickels nights noodles notebooks notes nougats novels nuggets numbers nurses nuts oaks objects
observations occurrences octagons octopuses offers officers offices ohms oil omelets omelettes onions options oranges
orangutans orchards orchids orcs orderings orders orientations ostriches ounces outcomes outfits owls oxen oysters
packages packets packs pages pails paint painters paintings pairings pairs palindromes pallets pamphlets pancakes
pandas panels pans pants papayas paper paperclips papers parabolas paragraphs parakeets parents parks parrots parsecs
parsnips participants particles parties partitions partners parts pascals passengers passes pastries patches paths
patients patrons patterns paws payments peaches peanuts pearls pears pebbles pecks pegs pencils penguins pennies pens
pentagons people peppers periods permits permutations persons pesetas pesos petals pets petunias pfennigs phones
photographs photos phrases physicians pianists pianos pickles picks pictures pieces pies pigeons piglets pigs piles
pillows pills pilots pineapples pinecones pines pins pints pitches pixels pizzas places planes planets planks planners
plans planters plants plates players playlists plays plots plugs plums pockets pods pointers points poles pollywogs
polyhedra polynomials pomegranates pomelos poodles pools popcorn popsicles portions portraits positions possibilities
postcards posters posts potatoes pots pouches poultry pounds presents pretzels prices primes prints prizes
probabilities problems professionals professors properties puffs pugs pumpkins pumps punches pupils puppies pups
purchases purses pushups puzzles pyramids pythons quadrilaterals quadruples quantities quarts questions quiches quilts
quizzes rabbits rads racers races rackets racquets radians raisins rands ranks raspberries rats ravens readers reams
receives recipes recoveries rectangles reflections refuels regions repairs repeats representations representatives
reps requests requirements residents residues restaurants reviews revolutions rhinestones rhinos ribbon ribbons rice
riddles riders rides ridges rings robins robots rockets rocks rods roles rolls roommates rooms roosters roots rope
ropes roses rotations roubles rounds routes rows rubies rubles rules rungs runners runs rupees sacks sacs sailors
sails salads sales salmon salt salutations samples sand sandcastles sandwiches saplings sapphires satellites sausages
savings scallops scarves schoolers schools scientists scoops screens screws sculptures seagulls seashells
seasons seatings seats seconds sections sectors seedlings seeds segments selections selfies semesters semicircles
seniors sentences sequences series services servings sessions sets settings shares sharks sheep sheets shells shelves
shifts shingles shipments ships shirts shoeboxes shoes shoppers shots showers shows shrimp siblings sides
sightings signatures signs silver singers singles sinks sisters sites sits situps sizes skaters skates skeins
skeletons skips skirts skittles slats sleeves slices slips slopes slots smartphones smores snacks snails snakes
snapdragons snowballs snowflakes soaps socks sodas sofas soil soldiers solids solutions songs sonnets sons sours
souvenirs spaces spades sparklers spears specialists species spectators speeds spheres spiders spinners spokes spools
spoons sports spots sprigs sprinters squats squirrels stacks stages stairs stalks stamps stanzas staplers stars
starters statements states stations statues steaks stems steps steradians stickers sticks stingrays stitches stones
stools stoplights stores stories storks strands strawberries straws streams streetlights streets string strings
stripes strips strokes students stuffers stuffies subcommittees subjects subs subscribers subscriptions subsets
substitutions substrings suckers sugar suitcases suits sundaes sunflowers supplements supplies surfers surveys
swallows swans sweaters sweets swimmers swine switches systems tables tablespoons tacks tacos tadpoles tangents
tangerines tanks tapes taps tarantulas targets tarts tasks tattoos taxes taxis tea teachers teacups teams tears teas
teaspoons teddies teenagers teeth televisions tents terms terriers tests tetrahedra tetras textbooks texts things
thorns tickets ticks ties tigers tiles tilings time tins tips tires tissues toads toddlers toenails toes tokens
tomatoes tonnes tons tools toothbrushes toothpicks toppings tortoises tosses touchdowns tourists tours towels towers
towns toys tractors trains trays treatments trees trials triangles tricks tries triples triplets trips trolls
trombones trophies trout trouts truckloads trucks truffles trumpets tubes tubs tulips tuples turkeys turns turtles
twigs types unicorns uniforms units users utensils utilities vacations vaccines values vampires vans variables vectors
vegetables vehicles vents venues vertices vests vets vibrations videos viewers vines violins visitors visits vlogs
volts volumes volunteers voters votes vowels wages waiters walks walls walnuts wands washers watches water watermelons
watts ways weasels websites wedges weeds weekdays weekends weeks weights werewolves whales wheels whiskers whistlers
whiteboards whites widgets windows wings winners wins wipes wire wolves wombats women words work workers worms
wrappers yards yarns years yen yogurts yolks yuan zebras zeroes zeros zombies
`

// qualities are words before a noun.
const qualities = `
US acute additional adult american annual apple area bar baseball basketball big bike birthday black blue board book
boy brown bus business calendar car cherry chess chocolate coffee cold college complex computer concert congruent
consecutive convex corn cream cubic daily different digit distinct dollar domestic double empty equal equilateral
equivalent even exterior extra farm female flower fluid football free french fresh fruit full gift girl glass golden
golf good grade gray green grey grocery high hot ice inner integer integral interior isosceles large lattice left
lemon light linear little long lucky male metal metric milk monthly movie natural nautical new nonnegative nontrivial
nonzero obtuse odd old orange ordered outer paid paper peanut perfect pet phone pink plane plastic positive possible
potato prime purple rational real red regular remaining rice right ripe rotten school sea shopping short similar
single small soccer special square strawberry stuffed such sugar surface tall tea tennis text ticket tiny total
trading train tree triple trivial unique unit unordered valid vanilla vegetable video wedding weekly wheat white whole
wild wooden working yearly yellow young
`

var (
	nouns      = wordSet(counted, func(w string) string { return Singular(w) })
	Adjectives = wordSet(qualities, func(w string) string { return w })
)

func wordSet(list string, form func(string) string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[form(w)] = true
	}
	return set
}
