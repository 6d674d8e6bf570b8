package isa

import "unsafe"

// HeadArgs is one head of one instance for the assembly, which knows it by its layout. What it
// points to is the worker's and the shard's memory.
type HeadArgs struct {
	config uintptr
	// blocks of 16 tokens × 16 columns: k and v as rows of A, q and dy as columns of B
	K, V, Q, DY  uintptr
	Step         int     // bytes between blocks
	Turned       uintptr // 16 columns × all tokens as A: v forward, k for the gradient
	QPairs       uintptr // all tokens × 16 columns as B
	DyPairs      uintptr
	First        uintptr
	T, Blocks    int
	Mask         uintptr // 0: nothing is dropped
	LogSum, Dots uintptr
	Y            uintptr // forward Y, for the gradient dQ
	LD           int     // bytes between its rows
	DK, DV       uintptr
	S, DP        uintptr // scratch from here on: a tile of floats for each block of keys
	P            uintptr // half a tile of pairs for each
	PA, SA       uintptr // half a tile for each pair of blocks
	Out          uintptr // a tile of floats
	Scale        float32
	Scale2       float32 // times log2 e
	Keep         float32
	KeepScale    float32
	// The gradient's panel, in blocks, the ends excluded. What has a place for each of its blocks is
	// addressed as if it began with the first block of all.
	Begin, End           int
	Panel, PanelEnd      int
	Row                  int     // bytes between blocks of queries of pa and sa
	SumQ, SumK           uintptr // sums that a later panel goes on with: a tile, and two tiles
	reached, last, plain int     // the assembly's own
}

// HeadWidth is the one that attention by tiles is made for.
const HeadWidth = 16

// Address is where a slice begins.
func Address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }
