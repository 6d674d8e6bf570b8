package kernel

// VRP: problems of several kinds in one batch, each instance with attributes of its own. An
// attribute that an instance lacks is a column with a neutral value, so that the rules know no
// kinds.
//
// What a reader could break: the words of a node, by column:
//
//	demand   what is delivered, or less than 0: what is picked up
//	x, y     the place
//	home     the way to the depot, 0 where routes are open; at the depot the limit of its length
//	early, late, service   when service may begin, and how long it takes; at the depot late is when
//	         vehicles must be back
//	kind     at the depot the Attributes, else 0
//
// Limits and times of an instance without them are +Inf; in the features they are 0.
//
// A vehicle may go to a customer if
//   - it delivers: what the vehicle carries at its fullest would stay within the capacity, and it
//     has picked nothing up yet, or may mix;
//   - it picks up: there is room for it;
//   - it comes before the customer's late, and could then be home by the limit and in time. A
//     vehicle at the depot goes to any customer: each can be served by a vehicle of its own.
//
// The context is the load that it may still deliver, the room for what it picks up, and the time
// and the length that are left, as shares.

// Attributes are what an instance of VRP has beyond capacities, as a set of bits.
type Attributes uint8

// The attributes.
const (
	Open     Attributes = 1 << iota // a route ends at its last customer: the way home costs nothing
	Backhaul                        // some customers have goods picked up, after all deliveries of their route
	Mixed                           // with Backhaul: in any order
	Limited                         // routes have a limit of length
	Windowed                        // customers have windows of time and service
	Several                         // of MDVRP: there are several depots
)

// Window is when service of a node may begin, and how long it takes.
type Window struct{ Early, Late, Service float32 }

// MDVRP: VRP whose instances may have up to three depots. A vehicle returns to the depot that it
// left, and which one the next vehicle leaves from is a decision.
//
// What a reader could break: the first depot is node 0, customers follow, and further depots are
// the last nodes; depots that an instance lacks are at the first one's place. The words of a
// node begin with VRP's, of which at a customer
//
//	home, home1, home2   are the ways to the depots, 0 where routes are open
//	kind                 has a bit for each depot from where a vehicle of its own could serve it
//
// and at a depot home1 is how many customers have its bit, 0 at one that the instance has not. The
// kind of further depots is less than 0, their number: by that a device knows them.
//
// To go to depot d is to drive home and have the next vehicle leave from d: one decision, and the
// way is to the vehicle's own depot. d must have customers left whom it can serve; the last way
// home goes to node 0, since nobody leaves. The first vehicle stands nowhere yet. It may take its
// place at a depot, which costs nothing, or go to a customer at once, from the depot that is
// nearest. A vehicle at a depot goes to the customers whom it can serve from there. Every customer
// has the bit of its nearest depot, from where it can be served if it can from any.
//
// The context is VRP's, where the vehicle's depot lies seen from the first, and the way there.

// MostDepots is how many depots an instance of MDVRP has at most.
const MostDepots = 3
