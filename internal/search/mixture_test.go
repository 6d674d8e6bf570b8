package search

// mixtureLines has one mixture per line: the names of its features.
const mixtureLines = `
late setup mixed-backhauls dimension skills fixed-cost max-duration latest-start reloads
depots setup linehaul-first optional groups allowed open-end duration-cost exact
several-windows backhauls-last allowed max-distance reloads break-load initial-load speed shortest
types late service lifo priority open-end max-stops shift speed
depots windows service skills counted max-distance shift breaks fewest
types windows mixed-backhauls shipments priority counted open-start break-load shortest
dimension optional shipments max-stops latest-start breaks initial-load speed fewest
release backhauls-last groups skills priority max-duration break-load profiles exact
several-windows mixed-backhauls lifo allowed open-end fixed-cost breaks profiles fewest
service release linehaul-first duration-cost max-duration max-distance shift latest-start shortest
depots windows several-windows dimension counted duration-cost max-stops reloads exact
late dimension groups open-start fixed-cost max-distance shift speed exact
types windows backhauls-last optional counted open-start max-duration initial-load profiles
windows late linehaul-first skills fixed-cost duration-cost initial-load speed fewest
depots types several-windows setup release mixed-backhauls lifo max-duration max-stops
depots several-windows service optional groups latest-start reloads profiles shortest
setup backhauls-last skills open-start fixed-cost duration-cost max-stops breaks shortest
several-windows late service dimension allowed priority open-start fixed-cost break-load
types windows release linehaul-first allowed open-end latest-start reloads breaks
types setup release shipments priority duration-cost shift profiles fewest
release mixed-backhauls optional lifo priority max-distance shift initial-load profiles
depots types late dimension optional lifo break-load exact shortest
service setup backhauls-last counted shift latest-start reloads break-load fewest
late release groups counted open-end max-duration initial-load exact fewest
service dimension optional shipments skills open-end max-duration max-distance shortest
depots setup mixed-backhauls lifo priority counted duration-cost max-distance speed
depots linehaul-first allowed counted open-start max-stops initial-load profiles shortest
types service mixed-backhauls groups open-end fixed-cost max-stops breaks exact
release dimension shipments fixed-cost duration-cost max-distance max-stops break-load profiles
depots windows service setup lifo open-start fixed-cost initial-load speed
types late shipments skills allowed latest-start breaks profiles shortest
types optional shipments priority max-duration latest-start breaks speed exact
several-windows mixed-backhauls shipments skills counted fixed-cost shift reloads speed
depots types windows backhauls-last groups allowed max-duration max-distance max-stops
release mixed-backhauls lifo skills priority open-end fixed-cost latest-start reloads
windows several-windows linehaul-first priority open-start duration-cost shift profiles fewest
late service setup backhauls-last groups open-end break-load profiles shortest
windows setup release linehaul-first optional fixed-cost break-load initial-load speed
depots service shipments allowed counted fixed-cost duration-cost max-stops shift
`
