"""The live what-if: a small server whose page bills a network again while a slider moves."""
