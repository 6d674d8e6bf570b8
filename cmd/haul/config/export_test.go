package config

// What tests of the whole program compare with.
type CheckReport = checkReport
