"""Commands whose output is kept whole, by name: what the command line and what it calls return."""

COMMANDS = {
    "predict": "predict ad -b nucleo_l4r5zi",
    "predict-operands": "predict ad -b nucleo_l4r5zi --per-operand",
    "predict-cached": "predict ad -b stm32h747i_disco",
    "predict-cold": "predict ad -b stm32n6570_dk --cold",
    "predict-refused": "predict vww -b nucleo_f401re --runtime tflm-reference --weights moon",
    "whatif": "whatif ad -b nucleo_l4r5zi --set placement.weights=sram",
    "cache": "cache ad -b stm32h747i_disco",
    "check": "check ad -b nucleo_l4r5zi --max-ms 4 --max-ram 2KiB",
    "sweep": "sweep ad -b nucleo_l4r5zi -b rpi_pico --clock 80MHz,120MHz --max-ms 9",
    "select": "select ad -b nucleo_l4r5zi -b rpi_pico --max-ms 5 --no-advice",
    "advise": "advise ad -b nucleo_l4r5zi --runtime cmsis-nn --max-ms 4",
    "compare": "compare ad -b nucleo_l4r5zi --published",
    "board": "boards show nucleo_h7a3zi_q", "runtime": "runtimes show cmsis-nn",
    "explain": "explain im2col", "no-board": "predict ad -b nucleo",
    "plan": "plan ad -b nucleo_l4r5zi",
}
