package solve

// What tests of the whole program compare with.
var PrintRoutes = printRoutes
