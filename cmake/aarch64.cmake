# Cross-compiling for AArch64 with Debian's gcc-aarch64-linux-gnu; qemu-user runs the tests. Libraries are those that
# Debian installs beside the host's own (dpkg --add-architecture arm64). `./dev neon` uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
