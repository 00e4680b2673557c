/* attend: the program. */
#include "process.h"

int main(int argc, char **argv) { return cli_tool(argc, argv); }
