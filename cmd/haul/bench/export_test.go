package bench

// What tests of the whole program compare with.
var CostShapes = costShapes

const KeyCustomers = keyCustomers

var ScaleLinks = scaleLinks
var ScaleRanks = scaleRanks
