// Advantages and the step's sums. All sums run in a fixed order.
#include "haul.cuh"

enum { SHARED_MEAN, GIVEN, RUNNING };
enum { DIFFERENCE, STANDARD, PREFERENCE };

// Leading: the shortest of some lengths, and by how much pairs with a route of that length weigh
// more.
struct Leading { float best, more; };

__device__ bool leads(Leading l, float length, float tie) { return length - l.best <= tie * length; }

// leaders, of a warp: with `alone`, where two tie their pairs weigh no more than others; with a
// margin, by how many of them the next route is longer, at most `most`.
__device__ Leading leaders(const float *length, int routes, float tie, float more, int alone, float margin, float most, int lane) {
  float best = -length[0]; // the shortest length's negative
  for (int s = lane; s < routes; s += 32) best = -length[s] > best ? -length[s] : best;
  Leading l = {-warp_max(best), more};
  if (alone) {
    float count = 0;
    for (int s = lane; s < routes; s += 32) count += leads(l, length[s], tie) ? 1.0f : 0.0f;
    if (warp_sum(count) > 1) l.more = 0;
  }
  if (margin > 0) {
    const float none = -3e38f;
    float next = none; // the negative of the shortest length that does not lead
    for (int s = lane; s < routes; s += 32) next = !leads(l, length[s], tie) && -length[s] > next ? -length[s] : next;
    next = warp_max(next);
    const float margins = div_(-next - l.best, margin * l.best);
    l.more *= next == none ? 0.0f : margins < most ? margins : most;
  }
  return l;
}

// preferred, of one lane: how far route i of a group should become less likely beside the shorter
// ones, and more likely beside the longer ones. A pair of which one leads the group weighs more,
// and so does one within the row, of the starts from `first` on, of which one leads it.
__device__ float preferred(const float *length, const float *logprob, int i, int routes, int first, int starts, float alpha, float tie,
                           Leading group, Leading row) {
  const float own = length[i], p = logprob[i];
  const bool leader = leads(group, own, tie), near = leads(row, own, tie);
  float sum = 0;
#pragma unroll 4
  for (int j = 0; j < routes; j++) {
    const float other = length[j], x = alpha * (p - logprob[j]);
    float w = leader || leads(group, other, tie) ? 1 + group.more : 1.0f;
    if (j >= first && j < first + starts && (near || leads(row, other, tie))) w += row.more;
    const float sign = own - other > tie * own ? 1.0f : other - own > tie * other ? -1.0f : 0.0f;
    sum = fma_(sign * w, sigmoid_(sign * x), sum);
  }
  return sum;
}

// advantage, `lanes` threads an instance, which are whole warps: adv = (length - base)·weight, with
// base the mean over starts, the given one, or the running mean; before the first running mean base
// is the mean over starts and adv 0. With STANDARD it is divided by the spread of the starts, with
// PREFERENCE the starts of `group` instances, which are one under symmetries, are compared by
// pairs. What an instance's warps share each makes for itself.
KERNEL advantage(float *adv, const float *length, const float *logprob, float *base, const double *mean, const double *count, int instances,
                 int starts, int lanes, int mode, int by, float alpha, float floor, float tie, float weight, float leader,
                 int alone, float margin, float most, int group) {
  int i = blockIdx_x * (blockDim_x / lanes) + threadIdx_x / lanes, first = threadIdx_x % lanes, lane = threadIdx_x & 31;
  if (i >= instances) return;
  bool unset = mode == RUNNING && *count == 0;
  float b = 0;
  if (mode == SHARED_MEAN || unset) {
    for (int s = lane; s < starts; s += 32) b += length[i * starts + s];
    b = div_(warp_sum(b), (float)starts);
  } else if (mode == RUNNING) {
    b = (float)*mean;
  } else {
    b = base[i];
  }
  if (by == STANDARD) {
    float square = 0;
    for (int s = lane; s < starts; s += 32) square += (length[i * starts + s] - b) * (length[i * starts + s] - b);
    weight = div_(weight, sqrtf_(div_(warp_sum(square), (float)starts)) + floor);
  }
  // the group's first route, and how many it has
  const int head = i / group * group * starts, routes = group * starts;
  Leading all = {0, 0}, row = {0, 0};
  if (by == PREFERENCE) {
    weight = div_(weight * alpha, (float)routes);
    all = leaders(length + head, routes, tie, leader, alone, margin, most, lane);
    row = leaders(length + i * starts, starts, tie, group > 1 ? leader : 0.0f, alone, margin, most, lane);
  }
  for (int s = first; s < starts; s += lanes) {
    float v = length[i * starts + s] - b;
    if (by == PREFERENCE) v = preferred(length + head, logprob + head, i * starts - head + s, routes, i * starts - head, starts, alpha, tie, all, row);
    adv[i * starts + s] = unset ? 0.0f : v * weight;
  }
  if (mode != GIVEN && first == 0) base[i] = b;
}

// log_: x = m·2^e with m in [sqrt(1/2), sqrt(2)); log m = 2·atanh((m-1)/(m+1)) by its series, to
// double precision.
__device__ double log_(double x) {
  u64 bits = __builtin_bit_cast(u64, x);
  if (!(x > 0) || bits >> 52 == 0x7ff || bits >> 52 == 0) return x == 0 ? -__builtin_inf() : x > 0 ? x : __builtin_nan("");
  int e = (int)(bits >> 52) - 1023;
  double m = __builtin_bit_cast(double, (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    e++;
  }
  double s = (m - 1) / (m + 1), q = s * s, sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * q + 1.0 / k;
  return e * 0.69314718055994530942 + 2 * s * sum;
}

// block_tree adds v over a block of 1024, in a tree. What is read last nobody writes before the
// next sync.
__device__ __forceinline__ double block_tree(double v) {
  __shared__ double part[1024];
  const int tid = threadIdx_x;
  sync(); // the last sum has been read
  part[tid] = v;
  for (int half = 512; half > 1; half >>= 1) {
    sync();
    if (tid < half) part[tid] += part[tid + half];
  }
  sync();
  return part[0] + part[1];
}

// What a program adds up, as tally.go lays it out.
struct Column {
  const void *at; // null: 1
  int row, step;  // elements between instances, and between columns
};
struct Term {
  Column x, y;
  double weight;
  int coefficient; // -1: none
  u32 flags;
};
struct Sum { int first, last; }; // its terms
static_assert(sizeof(Term) == 48 && sizeof(Sum) == 8, "tally.go");
enum { LOG = 1, MEAN = 2, X_INT = 4, Y_INT = 8 };

__device__ __forceinline__ double element(const Column &c, int row, int column, u32 isInt) {
  const long at = (long)row * c.row + column * c.step;
  return isInt ? (double)((const int *)c.at)[at] : (double)((const float *)c.at)[at];
}

// tally, a block of 1024 per sum: adds the step's to metrics->sums, from place `first` on. Thread k
// adds rows k, k+1024, ..., a row being one column of an instance, then sums meet in a tree.
KERNEL __launch_bounds__(1024) tally(Metrics *metrics, const Control *control, const Sum *sums, const Term *terms, int first, int rows, int columns) {
  const Sum s = sums[blockIdx_x];
  double total = 0;
  for (int k = s.first; k < s.last; k++) {
    const Term t = terms[k];
    double v = 0;
    for (int i = threadIdx_x; i < rows; i += 1024) {
      const int row = i / columns, column = i - row * columns;
      double x = t.x.at ? element(t.x, row, column, t.flags & X_INT) : 1;
      if (t.flags & LOG) x = log_(x);
      if (t.y.at) x *= element(t.y, row, column, t.flags & Y_INT);
      v += x;
    }
    v = block_tree(v);
    double weight = t.weight;
    if (t.coefficient >= 0) weight *= control->coefficients[t.coefficient];
    v *= weight;
    total += t.flags & MEAN ? v / rows : v;
  }
  if (threadIdx_x == 0) metrics->sums[first + blockIdx_x] += total;
}

// running_mean, one block of 1024: moves the mean of x's rows on; decay is a double's bits. The
// first step sets it.
KERNEL __launch_bounds__(1024) running_mean(double *mean, double *count, const float *x, u64 decay, int rows) {
  double v = 0;
  for (int i = threadIdx_x; i < rows; i += 1024) v += x[i];
  const double sum = block_tree(v);
  if (threadIdx_x != 0) return;
  const double keep = __builtin_bit_cast(double, decay), now = sum / rows;
  *mean = *count == 0 ? now : keep * *mean + (1 - keep) * now;
  *count += 1;
}
