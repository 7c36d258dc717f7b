"""Route `cel`: rows that have changed follow a carrier, whose edges are on the device.

WolfGraph's Concatenated Edge List (Zhu et al., FGCS 2020). Its carriers are filter tasks, which alone a plan holds.
What follows them is found and sent by kernels (`engine/execution/cel.py`), and does not travel.
"""

name = "cel"
