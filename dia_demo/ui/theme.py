"""The theme of the page: warm paper and a teal accent, light and dark. No web fonts.

Colours are defined only here; `assets/page/style.css` uses them through
gradio's own variables.
"""

from __future__ import annotations

import gradio as gr

# Each pair is (light, dark). Text on its background is at least 4.5:1 in both.
PAPER = ("#f6f4ef", "#161513")
CARD = ("#ffffff", "#1f1e1b")
FIELD = ("#fbfaf7", "#171613")
INK = ("#1d1b18", "#edeae3")
QUIET = ("#5d584f", "#aaa499")
LINE = ("#dedad1", "#38352f")
FIELD_LINE = ("#8f897d", "#746e63")
ACCENT = ("#0f6b63", "#4cc9b8")
ACCENT_HOVER = ("#0b544e", "#74dccd")
ON_ACCENT = ("#ffffff", "#06211e")
ACCENT_SOFT = ("#e3f0ee", "#1c302d")

_COLOURS = {
    PAPER: "body_background_fill background_fill_secondary",
    CARD: "block_background_fill background_fill_primary panel_background_fill "
    "button_secondary_background_fill checkbox_label_background_fill table_odd_background_fill "
    "table_even_background_fill block_label_background_fill",
    FIELD: "input_background_fill input_background_fill_focus checkbox_background_color",
    INK: "body_text_color block_title_text_color block_label_text_color "
    "button_secondary_text_color button_secondary_text_color_hover checkbox_label_text_color "
    "checkbox_label_text_color_selected accordion_text_color table_text_color",
    QUIET: "body_text_color_subdued block_info_text_color input_placeholder_color",
    LINE: "border_color_primary block_border_color panel_border_color table_border_color "
    "block_label_border_color",
    FIELD_LINE: "input_border_color checkbox_border_color button_secondary_border_color",
    ACCENT: "color_accent border_color_accent slider_color link_text_color link_text_color_active "
    "link_text_color_visited input_border_color_focus button_primary_background_fill "
    "button_primary_border_color button_secondary_border_color_hover loader_color "
    "checkbox_background_color_selected checkbox_border_color_selected "
    "checkbox_border_color_focus",
    ACCENT_HOVER: "link_text_color_hover button_primary_background_fill_hover "
    "button_primary_border_color_hover",
    ON_ACCENT: "button_primary_text_color button_primary_text_color_hover",
    ACCENT_SOFT: "color_accent_soft button_secondary_background_fill_hover "
    "checkbox_label_background_fill_selected checkbox_label_background_fill_hover "
    "code_background_fill",
}

_SHAPE = {
    "block_border_width": "0px",
    "block_shadow": "none",
    "block_radius": "12px",
    "block_label_border_width": "0px",
    "block_title_text_weight": "600",
    "block_info_text_size": "13px",
    "button_large_radius": "10px",
    "button_medium_radius": "8px",
    "button_small_radius": "8px",
    "button_border_width": "1px",
    "input_border_width": "1px",
    "input_radius": "8px",
    "input_shadow": "none",
    "checkbox_label_border_width": "0px",
    "checkbox_label_shadow": "none",
    "form_gap_width": "0px",
}


def make_theme() -> gr.themes.Base:
    """The theme, with fonts that every system already has."""
    theme = gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        font=["sans-serif"],
        font_mono=["monospace"],
    )
    # As strings: a Font would be quoted, and "system-ui" in quotes is not a font.
    theme.font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif"
    theme.font_mono = "ui-monospace, 'SF Mono', Consolas, 'DejaVu Sans Mono', monospace"
    values = dict(_SHAPE)
    for (light, dark), names in _COLOURS.items():
        for name in names.split():
            values |= {name: light, f"{name}_dark": dark}
    # The only colour whose dark variant `set` does not accept, though the style sheet uses it.
    theme.color_accent_dark = values.pop("color_accent_dark")  # type: ignore[attr-defined]
    return theme.set(**values)
