"""Docstrings in three styles."""

import unittest

from toolgate_worker.docstrings import parse

CASES = {
    "google": """Finds flights.

        Prices are in euros.

        Args:
            origin (str): Airport code,
                three letters.
            days (Optional[list[int]]): Days: of the week.
            **extra: Anything more.

        Returns:
            The flights,
            cheapest first.

        Raises:
            ValueError: never
        """,
    "numpy": """Finds flights.

        Prices are in euros.

        Parameters
        ----------
        origin : str
            Airport code,
            three letters.
        days : list of int, optional
            Days: of the week.
        **extra
            Anything more.

        Returns
        -------
        list
            The flights,
            cheapest first.

        See Also
        --------
        nothing
        """,
    "rest": """Finds flights.

        Prices are in euros.

        :param str origin: Airport code,
            three letters.
        :param days: Days: of the week.
        :type days: list
        :param extra: Anything more.
        :returns: The flights,
            cheapest first.
        :rtype: list
        """,
}


class Docstrings(unittest.TestCase):
    def test_styles_agree(self) -> None:
        for style, text in CASES.items():
            with self.subTest(style):
                doc = parse(text)
                self.assertEqual(doc.description, "Finds flights.\n\nPrices are in euros.")
                self.assertEqual(
                    doc.parameters,
                    {
                        "origin": "Airport code, three letters.",
                        "days": "Days: of the week.",
                        "extra": "Anything more.",
                    },
                )
                self.assertEqual(doc.returns, "The flights, cheapest first.")

    def test_edges(self) -> None:
        cases = [
            (None, "", {}),
            ("", "", {}),
            ("One line.", "One line.", {}),
            ("Please note:\nall is well.", "Please note:\nall is well.", {}),
            ("Note:\nnot indented", "Note:\nnot indented", {}),
            ("A.\n\nArgs:\n    x: X.\n\nMore words.", "A.\n\nMore words.", {"x": "X."}),
            (
                "A.\n\nParameters\n----------\nx, y : int\n    Both.",
                "A.",
                {"x": "Both.", "y": "Both."},
            ),
            ("Time is 12:30: late", "Time is 12:30: late", {}),
            (":param", ":param", {}),
            ("Args:", "Args:", {}),
        ]
        for text, description, parameters in cases:
            with self.subTest(text):
                doc = parse(text)
                self.assertEqual((doc.description, doc.parameters), (description, parameters))


if __name__ == "__main__":
    unittest.main()
