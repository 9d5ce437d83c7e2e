"""Written forms: how an order of labels, and the set's size, is text. One module each; `registry.FORMS` names them."""
