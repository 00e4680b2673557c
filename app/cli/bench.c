/* attend bench: measures how fast this machine computes the operations of models. */
#include "cli/bench/bench.h"

static const cli_command *const commands[] = {&bench_attention, &bench_bandwidth, &bench_gemm, &bench_peak, NULL};

const cli_command cli_bench = {
    .name = "bench",
    .summary = "measure the speed of attention and matrix products",
    .arguments = "COMMAND",
    .details = "Prints best and median time, GFLOP/s, and their share of the peak of fused\n"
               "multiply-adds (FMA) measured in the same run. Results are first compared with\n"
               "plain loops in double. With --json, one object per line.",
    .commands = commands,
};
