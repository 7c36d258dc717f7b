"""Storage keeps: files, formats, conversion, caches. It knows no device and no algorithm."""

import logging

logging.getLogger("penstock").addHandler(logging.NullHandler())  # what is logged goes where somebody sends it
