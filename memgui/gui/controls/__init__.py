"""The controls of the form and the bars, painted as STYLE draws them; Qt's own behaviour beneath."""
