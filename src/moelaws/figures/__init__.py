"""Figures: the sheet, the style, drawing and setting; pictures of a paper lie in its study."""
