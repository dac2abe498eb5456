#!/bin/sh
# From nothing to prices of one's own, on a board that needs no hardware: an emulated core whose
# costs are planted (QEMU's boards count instructions, not cycles; see docs/install.md).
#     sh examples/virtual_board.sh out/example
set -eu
out=${1:-out/example}
twin measure ad -b nucleo_l4r5zi --virtual unicorn-m4 --runs 5 --warmup 2 --fixed -o "$out/ad"
twin measure kws -b nucleo_l4r5zi --virtual unicorn-m4 --runs 5 --warmup 2 --fixed -o "$out/kws"
twin calibrate -b nucleo_l4r5zi "$out/ad" -o "$out/own.yaml"
twin predict kws -b nucleo_l4r5zi --runtime firmware --calibration "$out/own.yaml"
twin attribute kws "$out/kws"
