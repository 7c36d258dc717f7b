"""Storage: files, formats, conversion, caches. It depends on no device and on no algorithm."""

import logging

logging.getLogger("penstock").addHandler(logging.NullHandler())  # logging is for the application to configure
