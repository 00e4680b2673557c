/* attend bench: how fast this machine computes what models are made of. */
#include "cli/bench/bench.h"

static const cli_command *const commands[] = {&bench_attention, &bench_bandwidth, &bench_gemm, &bench_peak, NULL};

const cli_command cli_bench = {
    .name = "bench",
    .summary = "measure the speed of operations of models on this machine",
    .arguments = "COMMAND",
    .details = "Prints best and median time, GFLOP/s, and their share of the peak of\n"
               "multiply-adds measured in the same run. Results are compared with plain loops in\n"
               "double first. With --json one object a line.",
    .commands = commands,
};
