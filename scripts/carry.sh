#!/bin/sh
# Puts the campaign of random programs and the tool into a folder, with the shared libraries that they need beside the
# system's C library. A machine without Debian's packages runs them. It still needs a C++ compiler for kernels, and an
# NVIDIA driver and NVRTC for those of a GPU.
#
#   scripts/carry.sh FOLDER [build/release]
#
# There: LD_LIBRARY_PATH=FOLDER FOLDER/campaign interpret 0:100000 --jobs 16
set -eu
folder=$1
build=${2-$(dirname "$0")/../build/release}
mkdir -p "$folder"
for program in "$build/tests/campaign" "$build/bin/napkin"; do
    cp "$program" "$folder"
    ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | while read -r library; do
        case ${library##*/} in
            libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;;
            *) cp -L "$library" "$folder" ;;
        esac
    done
done
