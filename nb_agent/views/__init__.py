"""What a person sees of a run: one state folded from its events, drawn as a widget, as HTML, as text and as charts."""
