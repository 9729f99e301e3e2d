"""Units of measure: one and several of each, and which are recognised without a number."""

from __future__ import annotations

import re

_NAMES = {
    "km/h": "kilometer per hour", "m/s": "meter per second",
    "kph": "kilometer per hour", "kmh": "kilometer per hour",
    "mph": "mile per hour", "mpg": "mile per gallon", "sq ft": "square foot",
    "sq. ft.": "square foot", "sqft": "square foot", "sq m": "square meter",
    "sq km": "square kilometer", "sq mi": "square mile", "sq in": "square inch",
    "sq. ft": "square foot", "sq. m": "square meter", "sq. km": "square kilometer",
    "sq. mi": "square mile", "sq. in": "square inch",
    "cu ft": "cubic foot", "fl oz": "fluid ounce", "fl. oz.": "fluid ounce",
    "ft-lb": "foot pound", "ft": "foot", "in.": "inch", "lbs": "pound", "lb": "pound",
    "oz": "ounce", "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz",
    "THz": "terahertz", "bps": "bit per second", "kbps": "kilobit per second",
    "Kbps": "kilobit per second", "Mbps": "megabit per second", "Gbps": "gigabit per second",
    "Tbps": "terabit per second", "MBps": "megabyte per second", "GBps": "gigabyte per second",
    "Mbit": "megabit", "Gbit": "gigabit", "Mb": "megabit", "Gb": "gigabit", "kB": "kilobyte",
    "KB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "PB": "petabyte",
    "EB": "exabyte", "KiB": "kibibyte", "MiB": "mebibyte", "GiB": "gibibyte", "TiB": "tebibyte",
    "fps": "frame per second", "FPS": "frame per second", "rpm": "revolution per minute",
    "RPM": "revolution per minute", "bpm": "beat per minute", "BPM": "beat per minute",
    "wpm": "word per minute", "dpi": "dot per inch", "DPI": "dot per inch",
    "ppi": "pixel per inch", "ppm": "part per million", "ppb": "part per billion",
    "psi": "pound per square inch", "PSI": "pound per square inch",
    "mmHg": "millimeter of mercury", "hp": "horsepower", "HP": "horsepower",
    "bhp": "brake horsepower", "Pa": "pascal", "hPa": "hectopascal", "kPa": "kilopascal",
    "MPa": "megapascal", "mbar": "millibar", "J": "joule", "kJ": "kilojoule", "MJ": "megajoule",
    "W": "watt", "mW": "milliwatt", "kW": "kilowatt", "MW": "megawatt", "GW": "gigawatt",
    "TW": "terawatt", "Wh": "watt hour", "kWh": "kilowatt hour", "MWh": "megawatt hour",
    "GWh": "gigawatt hour", "TWh": "terawatt hour", "Ah": "amp hour", "mAh": "milliamp hour",
    "kVA": "kilovolt amp", "mA": "milliamp", "V": "volt", "mV": "millivolt", "kV": "kilovolt",
    "Ω": "ohm", "kΩ": "kilohm", "MΩ": "megohm", "dB": "decibel", "dBA": "decibel",
    "pts": "point", "px": "pixel", "MP": "megapixel", "Nm": "newton meter", "kN": "kilonewton",
    "hrs": "hour", "hr": "hour", "h": "hour", "mins": "minute", "min": "minute",
    "secs": "second", "sec": "second", "s": "second", "ms": "millisecond", "µs": "microsecond",
    "ns": "nanosecond", "yrs": "year", "yr": "year", "wks": "week", "wk": "week",
    "mos": "month", "mo": "month", "tsp": "teaspoon", "tsps": "teaspoon", "tbsp": "tablespoon",
    "tbsps": "tablespoon", "Tbsp": "tablespoon", "tbs": "tablespoon", "qt": "quart",
    "pt": "pint", "gal": "gallon", "mi": "mile", "yd": "yard", "yds": "yard",
    "nmi": "nautical mile", "kts": "knot", "kn": "knot", "ly": "light year", "ha": "hectare",
    "cc": "cubic centimeter", "cal": "calorie", "kcal": "kilocalorie", "mcg": "microgram",
    "mol": "mole", "mmol": "millimole", "mSv": "millisievert", "lx": "lux", "lm": "lumen",
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter",
    "µm": "micrometer", "nm": "nanometer", "kg": "kilogram", "g": "gram", "mg": "milligram",
    "µg": "microgram", "l": "liter", "L": "liter", "dl": "deciliter", "dL": "deciliter",
    "cl": "centiliter", "cL": "centiliter", "ml": "milliliter", "mL": "milliliter",
    "µl": "microliter", "µL": "microliter", "hl": "hectoliter",
    "km²": "square kilometer", "m²": "square meter", "cm²": "square centimeter",
    "mm²": "square millimeter", "ft²": "square foot", "in²": "square inch",
    "mi²": "square mile", "km2": "square kilometer", "m2": "square meter", "m³": "cubic meter",
    "m3": "cubic meter", "cm³": "cubic centimeter", "mm³": "cubic millimeter",
    "ft³": "cubic foot", "km³": "cubic kilometer", "dm³": "cubic decimeter",
    "°C": "degree Celsius", "°F": "degree Fahrenheit", "° C": "degree Celsius",
    "° F": "degree Fahrenheit", "ºC": "degree Celsius", "ºF": "degree Fahrenheit",
    "℃": "degree Celsius", "℉": "degree Fahrenheit", "º": "degree", "°K": "kelvin",
    "°": "degree",
}  # fmt: skip
_SAME = ("hertz", "horsepower", "lux")
_IRREGULAR = {"foot": "feet", "inch": "inches"}


def _plural(name: str) -> str:
    head, *tail = re.split(r"(?= per | of | Celsius| Fahrenheit)", name, maxsplit=1)
    last = head.split()[-1]
    if last.endswith(_SAME):
        return name
    plural = _IRREGULAR.get(last, f"{last}s")
    return head[: len(head) - len(last)] + plural + "".join(tail)


# One and several. A space may stand before each. The small mu is written in two ways.
UNITS: dict[str, tuple[str, str]] = {
    symbol: (name, _plural(name))
    for written, name in _NAMES.items()
    for symbol in {written, written.replace("µ", "μ")}
}
# Behind a slash: mg/dL, m/s², g/100 g.
DENOMINATORS = {
    symbol: one for symbol, (one, _) in UNITS.items() if symbol not in ("°", "º", "MP", "pt")
} | {
    "s²": "second squared", "s2": "second squared", "day": "day", "d": "day", "week": "week",
    "month": "month", "year": "year", "hour": "hour", "minute": "minute", "second": "second",
    "person": "person", "night": "night", "serving": "serving", "gallon": "gallon",
}  # fmt: skip
# What can be nothing else.
STANDALONE = frozenset(
    "km/h m/s kph mph mpg kWh MWh GWh TWh mAh Mbps Gbps kbps Kbps Tbps GHz MHz kHz THz Hz dB tbsp "
    "tbsps Tbsp tsp tsps kg km cm mm mg µg μg mcg mL ml dL kcal psi mmHg hPa kPa ppm ppb dpi rpm "
    "fps bpm lbs GiB MiB KiB TiB km² m² cm² ft² m³ cm³ ft³ °C °F ℃ ℉ kΩ MΩ Ω mmol kJ MJ".split()
) | {"sq ft", "fl oz", "sq km"}
# With a hyphen before them: a 10-km run.
WITH_HYPHEN = frozenset(
    "km kg mg ml mL cm mm mph kWh kW MHz GHz kHz ft lb lbs oz yd mi min hr hrs sec yr in MB GB TB "
    "Mbps Gbps W V MP g m".split()
) - {"in"}
