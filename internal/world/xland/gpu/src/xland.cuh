// A step of XLand-MiniGrid for one environment, as package xland has it in Go: the same grid with
// its margin, the same order of draws.
//
// What a reader could break: parity. Step and start follow state.go and layout.go line by line; the
// test compares views, rewards and ends with theirs. The room's words and a program's bytes are as
// tables.go writes them.
#pragma once

// FN is what a function begins with, SLOW where it is called and not copied into its callers.

typedef unsigned char u8;

enum { ACT_FORWARD, ACT_RIGHT, ACT_LEFT, ACT_PICK, ACT_PUT, ACT_TOGGLE };
enum { CAN_WALK = 1, CAN_PICK = 2, CAN_PUT = 4, CAN_BLOCK = 8 };
enum { KIND_EMPTY = 0, KIND_KEY = 7, KIND_LOCKED = 8, KIND_CLOSED = 9, KIND_OPEN = 10 };
enum { COLOURS = 12, COLOUR_BLACK = 7, FLOOR = 1 * COLOURS + COLOUR_BLACK };
enum { R1, R2, R4, R6, R9 };
enum { GOAL_NONE, GOAL_HOLD, GOAL_ON_TILE, GOAL_NEAR, GOAL_TILE_NEAR, GOAL_TILE_ON_POSITION, GOAL_ON_POSITION, GOAL_TILE_NEAR_UP, GOAL_NEAR_UP = 11 };
enum { RULE_HOLD = 1, RULE_NEAR, RULE_TILE_NEAR, RULE_TILE_NEAR_UP, RULE_TILE_NEAR_LEFT = 7, RULE_NEAR_UP };
enum { MOST_TILES = 64, MOST_VIEW = 7 };

struct Window { int first, row, column; };

struct Room {
  int layout, size, stride, view, opaque, horizon, margin, cells, each;
  int ahead[4];
  Window window[4];
};

// What environments share.
struct World {
  const Room *room;
  const u8 *blank;      // [cells]
  const float *rewards; // [horizon+1]
  const u8 *can;        // [256]
};

struct Key { u32 a, b; };

// An environment's own; grid lies in memory.
struct Env {
  Key key;
  int at, clock;
  u8 facing, pocket;
  u8 *grid;
  const u8 *task; // kind, a, b, y, x, acts, rules, tiles, then rules of (kind, a, b, product), then tiles
};

FN u32 rotate(u32 v, int by) { return v << by | v >> (32 - by); }

FN Key threefry(Key k, u32 x1) {
  u32 ks[3] = {k.a, k.b, k.a ^ k.b ^ 0x1BD11BDAu};
  u32 x0 = ks[0];
  x1 += ks[1];
#pragma unroll
  for (u32 i = 0; i < 5; i++) {
    const int even[4] = {13, 15, 26, 6}, odd[4] = {17, 29, 16, 24};
#pragma unroll
    for (int r = 0; r < 4; r++) {
      x0 += x1;
      x1 = rotate(x1, i & 1 ? odd[r] : even[r]) ^ x0;
    }
    x0 += ks[(i + 1) % 3];
    x1 += ks[(i + 2) % 3] + i + 1;
  }
  return Key{x0, x1};
}
FN Key split(Key k, u32 i) { return threefry(k, i); }
FN u32 bits(Key k, u32 i) { Key v = threefry(k, i); return v.a ^ v.b; }
SLOW u32 integer(Key k, u32 i, u32 low, u32 high) {
  u32 span = high - low, much = (1u << 16) % span;
  much = much * much % span;
  return low + (bits(split(k, 0), i) % span * much + bits(split(k, 1), i) % span) % span;
}

FN int cell(const Room &r, int y, int x) { return (y + r.margin) * r.stride + x + r.margin; }

FN void door(Env &e, const Room &r, Key colours, int i, int y, int x) {
  u32 c = integer(colours, i, 0, 6);
  e.grid[cell(r, y, x)] = (u8)(KIND_CLOSED * COLOURS + 1 + c); // red, green, blue, purple, yellow, grey
}

// The doors between rooms; the key that is left.
SLOW Key doors(Env &e, const Room &r, Key key) {
  int n = r.size;
  Key places = key, colours = key;
  switch (r.layout) {
  case R1: return key;
  case R2: colours = split(key, 1); places = split(key, 2); break;
  case R6: colours = split(key, 1); break;
  default: places = split(key, 1); colours = split(key, 2);
  }
  key = split(key, 0);
#define PLACE(i, high) ((int)integer(places, i, 1, high))
  switch (r.layout) {
  case R2: door(e, r, colours, 0, PLACE(0, n - 1), n / 2); break;
  case R4:
    door(e, r, colours, 0, n / 2, PLACE(0, n / 2));
    door(e, r, colours, 1, n / 2, n / 2 + PLACE(1, n / 2));
    door(e, r, colours, 2, PLACE(2, n / 2), n / 2);
    door(e, r, colours, 3, n / 2 + PLACE(3, n / 2), n / 2);
    break;
  case R6:
    for (int i = 0; i < 6; i++) door(e, r, colours, i, n / 2 + (i % 3 - 1) * (n / 3), i >= 3 ? n / 2 + 2 : n / 2 - 2);
    break;
  case R9: {
    int side = n / 3, next = 0;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        if (i < 2) { door(e, r, colours, next, j * side + PLACE(next, side), (i + 1) * side); next++; }
        if (j < 2) { door(e, r, colours, next, (j + 1) * side, i * side + PLACE(next, side)); next++; }
      }
  }
  }
#undef PLACE
  return key;
}

// A start from the environment's key: doors, objects and the agent on the cells of the highest
// ranks, of equal ones the first.
SLOW void start(Env &e, const World &w) {
  const Room &r = *w.room;
  for (int i = 0; i < r.cells; i++) e.grid[i] = w.blank[i];
  Key key = doors(e, r, e.key);
  e.key = split(key, 0);
  Key places = split(key, 1), turn = split(key, 2);
  int rules = e.task[6], tiles = e.task[7], want = tiles + 1, n = 0;
  const u8 *objects = e.task + 8 + 4 * rules;
  u32 rank[MOST_TILES + 1];
  int place[MOST_TILES + 1];
  for (int y = 1; y < r.size - 1; y++)
    for (int x = 1; x < r.size - 1; x++) {
      int at = cell(r, y, x);
      if (!(w.can[e.grid[at]] & CAN_PUT)) continue;
      u32 d = bits(places, y * r.size + x) >> 9;
      if (n == want) {
        if (d <= rank[want - 1]) continue;
        n--;
      }
      int i = n++;
      for (; i > 0 && rank[i - 1] < d; i--) {
        rank[i] = rank[i - 1];
        place[i] = place[i - 1];
      }
      rank[i] = d;
      place[i] = at;
    }
  for (int i = 0; i < tiles; i++)
    if (objects[i]) e.grid[place[i]] = objects[i];
  e.at = place[want - 1];
  e.facing = (u8)integer(turn, 0, 0, 4);
  e.pocket = 0;
  e.clock = 0;
}

// What one rule does after an action.
FN void apply(Env &e, const Room &r, const u8 *u, int action, int touched) {
  u8 *grid = e.grid;
  int kind = u[0];
  u8 a = u[1], b = u[2], product = u[3];
  if (kind == RULE_HOLD) {
    if (action == ACT_PICK && e.pocket == a) e.pocket = product;
  } else if (kind == RULE_NEAR) {
    if (action != ACT_FORWARD) return;
    for (int k = 0; k < 4; k++)
      if (grid[e.at + r.ahead[k]] == a) grid[e.at + r.ahead[k]] = product;
  } else if (kind == RULE_TILE_NEAR) {
    u8 t = grid[touched];
    if (action != ACT_PUT || (t != a && t != b)) return;
    for (int k = 0; k < 4; k++) {
      u8 n = grid[touched + r.ahead[k]];
      if ((t == a && n == b) || (t == b && n == a)) {
        grid[touched + r.ahead[k]] = product;
        grid[touched] = FLOOR;
      }
    }
  } else if (kind <= RULE_TILE_NEAR_LEFT) {
    if (action != ACT_PUT) return;
    int side = r.ahead[kind - RULE_TILE_NEAR_UP];
    u8 t = grid[touched], beside = grid[touched + side], opposite = grid[touched - side];
    if (t == b && opposite == a) {
      grid[touched - side] = product;
      grid[touched] = FLOOR;
    }
    if (t == a && beside == b) {
      grid[touched + side] = product;
      grid[touched] = FLOOR;
    }
  } else {
    if (action != ACT_FORWARD && action != ACT_PUT) return;
    int to = e.at + r.ahead[kind - RULE_NEAR_UP];
    if (grid[to] == a) grid[to] = product;
  }
}

FN bool near(const Env &e, const Room &r, int at, u8 tile) {
  const u8 *grid = e.grid;
  return grid[at + r.ahead[0]] == tile || grid[at + r.ahead[1]] == tile || grid[at + r.ahead[2]] == tile || grid[at + r.ahead[3]] == tile;
}

FN bool reached(const Env &e, const Room &r, int action, int touched) {
  const u8 *grid = e.grid, *g = e.task;
  int kind = g[0];
  u8 a = g[1], b = g[2];
  switch (kind) {
  case GOAL_NONE: return false;
  case GOAL_HOLD: return action == ACT_PICK && e.pocket == a;
  case GOAL_ON_TILE: return action == ACT_FORWARD && grid[e.at] == a;
  case GOAL_NEAR: return action == ACT_FORWARD && near(e, r, e.at, a);
  case GOAL_TILE_NEAR: {
    if (action != ACT_PUT) return false;
    u8 t = grid[touched];
    if (t == a) return near(e, r, touched, b);
    return t == b && near(e, r, touched, a);
  }
  case GOAL_TILE_ON_POSITION: return grid[cell(r, g[3], g[4])] == a;
  case GOAL_ON_POSITION: return e.at == cell(r, g[3], g[4]);
  }
  if (kind < GOAL_NEAR_UP) {
    if (action != ACT_PUT) return false;
    int side = r.ahead[kind - GOAL_TILE_NEAR_UP];
    u8 t = grid[touched];
    return (t == b && grid[touched - side] == a) || (t == a && grid[touched + side] == b);
  }
  return (action == ACT_FORWARD || action == ACT_PUT) && grid[e.at + r.ahead[kind - GOAL_NEAR_UP]] == a;
}

// An action; what it paid. ends is the episode's end.
FN float step(Env &e, const World &w, int action, bool &ends) {
  const Room &r = *w.room;
  u8 *grid = e.grid;
  int front = e.at + r.ahead[e.facing], touched = e.at;
  switch (action) {
  case ACT_FORWARD:
    if (w.can[grid[front]] & CAN_WALK) e.at = front;
    touched = e.at;
    break;
  case ACT_RIGHT: e.facing = (e.facing + 1) & 3; break;
  case ACT_LEFT: e.facing = (e.facing + 3) & 3; break;
  case ACT_PICK:
    touched = front;
    if (e.pocket < COLOURS && w.can[grid[front]] & CAN_PICK) {
      e.pocket = grid[front];
      grid[front] = FLOOR;
    }
    break;
  case ACT_PUT:
    touched = front;
    if (e.pocket >= COLOURS && w.can[grid[front]] & CAN_PUT) {
      grid[front] = e.pocket;
      e.pocket = 0;
    }
    break;
  default: { // ACT_TOGGLE
    touched = front;
    u8 t = grid[front], kind = t / COLOURS, colour = t % COLOURS;
    if (kind == KIND_LOCKED) {
      if (e.pocket == KIND_KEY * COLOURS + colour) grid[front] = KIND_OPEN * COLOURS + colour;
    } else if (kind == KIND_CLOSED) {
      grid[front] = KIND_OPEN * COLOURS + colour;
    } else if (kind == KIND_OPEN) {
      grid[front] = KIND_CLOSED * COLOURS + colour;
    }
  }
  }
  if (e.task[5] >> action & 1)
    for (int i = 0; i < e.task[6]; i++) apply(e, r, e.task + 8 + 4 * i, action, touched);
  e.clock++;
  if (reached(e, r, action, touched)) {
    ends = true;
    return w.rewards[e.clock];
  }
  ends = e.clock == r.horizon;
  return 0;
}

// Light along a row and to the row above, from (y, x) to its side.
FN void spread(bool *lit, const u8 *seen, const u8 *can, int n, int y, int x, int side) {
  if (!lit[y * n + x] || can[seen[y * n + x]] & CAN_BLOCK) return;
  lit[y * n + x + side] = true;
  if (y > 0) lit[(y - 1) * n + x + side] = lit[(y - 1) * n + x] = true;
}

// What the agent sees, turned so that it looks up from the middle of the lowest row.
FN void look(u8 *out, const Env &e, const World &w) {
  const Room &r = *w.room;
  const Window v = r.window[e.facing];
  int n = r.view, row = e.at + v.first;
  if (!r.opaque) {
    for (int i = 0; i < n; i++, row += v.row)
      for (int j = 0; j < n; j++) out[i * n + j] = e.grid[row + j * v.column];
    return;
  }
  u8 seen[MOST_VIEW * MOST_VIEW];
  bool lit[MOST_VIEW * MOST_VIEW];
  for (int i = 0; i < n; i++, row += v.row)
    for (int j = 0; j < n; j++) {
      seen[i * n + j] = e.grid[row + j * v.column];
      lit[i * n + j] = false;
    }
  lit[(n - 1) * n + n / 2] = true;
  for (int y = n - 1; y >= 0; y--) {
    for (int x = 0; x < n - 1; x++) spread(lit, seen, w.can, n, y, x, 1);
    for (int x = n - 1; x > 0; x--) spread(lit, seen, w.can, n, y, x, -1);
  }
  for (int i = 0; i < n * n; i++) out[i] = lit[i] ? seen[i] : 0;
}

// Where everything lies. State is numbers of all environments side by side, [7, n]: key, key, cell,
// clock, facing | pocket << 8, episodes that ended, those that ended with the goal.
struct Batch {
  u8 *views;    // [n, view, view]: tiles
  float *paid;  // [n]: rewards of the last step
  u8 *ended;    // [n]: the episode ended with the last step
  u32 *state;   // [7, n]
  u8 *grids;    // [n, cells]
  const u8 *programs;
  const int *task; // [n]: an environment's program
  World world;
  int n;
};

FN Env load(const Batch &b, int i) {
  Env e;
  e.key = Key{b.state[i], b.state[b.n + i]};
  e.at = b.state[2 * b.n + i];
  e.clock = b.state[3 * b.n + i];
  u32 both = b.state[4 * b.n + i];
  e.facing = both & 255;
  e.pocket = both >> 8;
  e.grid = b.grids + (long long)i * b.world.room->cells;
  e.task = b.programs + (long long)b.task[i] * b.world.room->each;
  return e;
}

FN void keep(const Batch &b, const Env &e, int i) {
  b.state[i] = e.key.a;
  b.state[b.n + i] = e.key.b;
  b.state[2 * b.n + i] = e.at;
  b.state[3 * b.n + i] = e.clock;
  b.state[4 * b.n + i] = e.facing | (u32)e.pocket << 8;
}

FN u8 *views(const Batch &b, int i) { return b.views + (long long)i * b.world.room->view * b.world.room->view; }

// Begins a life with the key in the environment's state, and looks.
FN void begin(const Batch &b, int i) {
  Env e = load(b, i);
  start(e, b.world);
  look(views(b, i), e, b.world);
  keep(b, e, i);
  b.state[5 * b.n + i] = b.state[6 * b.n + i] = 0;
}

// Takes actions [steps, n], one after another. An environment whose episode ends begins the next
// one in the same step. Views, rewards and ends are those of the last step.
FN void advance(const Batch &b, const u8 *actions, int steps, int i) {
  Env e = load(b, i);
  u32 episodes = 0, goals = 0;
  for (int t = 0; t < steps; t++) {
    bool ends;
    float reward = step(e, b.world, actions[(long long)t * b.n + i], ends);
    b.paid[i] = reward;
    b.ended[i] = ends;
    if (ends) {
      episodes++;
      goals += reward > 0;
      e.key = split(e.key, 0);
      start(e, b.world);
    }
    look(views(b, i), e, b.world);
  }
  keep(b, e, i);
  b.state[5 * b.n + i] += episodes;
  b.state[6 * b.n + i] += goals;
}
