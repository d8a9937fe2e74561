"""The life of a milestone."""

from tests.building import section
from tests.story import Story

URL = "projects/acme%2Fapi/milestones"


def test_the_life_of_a_milestone(story: Story) -> None:
    def step(value: object, *, prune: bool = False) -> list[str]:
        return story.step(section("milestones", value, prune=prune))

    assert step({"1.0": {"description": "First", "start_date": "2026-01-01", "due_date": "2026-02-01"}, "0.9": {}}) == [
        f'POST {URL} {{"title": "0.9"}}',
        f'POST {URL} {{"title": "1.0", "description": "First", "start_date": "2026-01-01", "due_date": "2026-02-01"}}',
    ]
    assert step({"1.0": {"due_date": "2026-03-01", "state": "closed"}}) == [
        f'PUT {URL}/2 {{"due_date": "2026-03-01", "state_event": "close"}}'
    ]
    assert step({"1.0": {"description": None, "start_date": None, "state": "active"}}) == [
        f'PUT {URL}/2 {{"description": null, "start_date": null, "state_event": "activate"}}'
    ]
    assert step({"1.0.0": {"renamed_from": ["1.0", "one"]}}) == [f'PUT {URL}/2 {{"title": "1.0.0"}}']
    assert step({"1.0.0": None}) == [f"DELETE {URL}/2"]
    assert step({}, prune=True) == [f"DELETE {URL}/1"]


def test_a_milestone_created_closed_takes_two_requests(story: Story) -> None:
    assert story.step(section("milestones", {"done": {"state": "closed", "description": ""}})) == [
        f'POST {URL} {{"title": "done"}}',
        f'PUT {URL}/1 {{"state_event": "close"}}',
    ]
