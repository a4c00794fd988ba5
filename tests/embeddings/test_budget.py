from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.embeddings.budget import DailyBudget
from app.embeddings.shared_cache import SharedCache
from app.errors import DenseReason, DenseUnavailableError
from tests.embeddings.conftest import RedisServer

pytestmark = pytest.mark.anyio


class Calendar:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 20, 22, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def spend(budget: DailyBudget, calls: int) -> None:
    for _ in range(calls):
        await budget.spend()


async def assert_spent(budget: DailyBudget) -> DenseUnavailableError:
    with pytest.raises(DenseUnavailableError) as caught:
        await budget.spend()
    assert caught.value.reason is DenseReason.BUDGET_SPENT
    return caught.value


async def test_the_call_behind_the_limit_is_refused_until_midnight_utc(tmp_path: Path) -> None:
    now = Calendar()
    budget = DailyBudget(3, tmp_path / "calls.json", now=now)
    await spend(budget, 3)
    assert "2026-03-21 00:00 UTC" in str(await assert_spent(budget))
    assert budget.is_spent
    now.now = datetime(2026, 3, 21, 0, 0, tzinfo=UTC)
    assert not budget.is_spent
    await spend(budget, 3)
    await assert_spent(budget)


async def test_a_restart_does_not_bring_the_calls_back(tmp_path: Path) -> None:
    now = Calendar()
    await spend(DailyBudget(3, tmp_path / "calls.json", now=now), 2)
    after_restart = DailyBudget(3, tmp_path / "calls.json", now=now)
    await after_restart.spend()
    await assert_spent(after_restart)


async def test_processes_of_one_folder_share_the_limit(tmp_path: Path) -> None:
    now = Calendar()
    one, other = (DailyBudget(4, tmp_path / "calls.json", now=now) for _ in range(2))
    for budget in (one, other, one, other):
        await budget.spend()
    await assert_spent(one)
    await assert_spent(other)


async def test_without_a_limit_calls_are_counted_only(tmp_path: Path) -> None:
    budget = DailyBudget(None, tmp_path / "calls.json")
    await spend(budget, 5)
    assert (budget.calls_today, budget.is_spent) == (5, False)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"day": "2026-03-20", "calls": "many"}'])
async def test_a_damaged_file_starts_anew(tmp_path: Path, content: str) -> None:
    file = tmp_path / "calls.json"
    file.write_text(content, encoding="utf-8")
    budget = DailyBudget(1, file, now=Calendar())
    await budget.spend()
    await assert_spent(budget)


async def test_a_folder_that_cannot_be_written_still_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file, not a folder", encoding="utf-8")
    budget = DailyBudget(2, tmp_path / "data" / "calls.json", now=Calendar())
    await spend(budget, 2)
    await assert_spent(budget)


async def test_replicas_share_the_limit_through_redis(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    now = Calendar()
    caches = [SharedCache(redis_server.url, ttl_seconds=60) for _ in range(2)]
    budgets = [
        DailyBudget(4, tmp_path / f"replica-{number}" / "calls.json", cache, now=now)
        for number, cache in enumerate(caches)
    ]
    for budget in budgets * 2:
        await budget.spend()
    await assert_spent(budgets[0])
    await assert_spent(budgets[1])
    for cache in caches:
        await cache.aclose()


async def test_without_redis_each_replica_goes_by_its_own_count(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    cache = SharedCache(redis_server.url, ttl_seconds=60)
    budget = DailyBudget(3, tmp_path / "calls.json", cache, now=Calendar())
    await budget.spend()
    redis_server.stop()
    await spend(budget, 2)
    await assert_spent(budget)
    await cache.aclose()
