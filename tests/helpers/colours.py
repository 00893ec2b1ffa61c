"""How well colours can be told apart, from the formulas of WCAG 2."""


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour, ground):
    """The contrast of a light colour on a dark ground."""
    return (luminance(colour) + 0.05) / (luminance(ground) + 0.05)
