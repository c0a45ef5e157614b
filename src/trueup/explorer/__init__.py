"""The local web page ``trueup explore``, built on Streamlit.

::

    serve         the command's work: address, guard, settings
    page          the head and the tabs
    estimator_tab, file_tab, plan_tab    what each tab asks and shows
    fields        formulas, noise and bounds as they are typed; refusals where they were asked for
    charts        lines with bands of errors, axes that no pole stretches
    code          Python and shell to copy
"""
