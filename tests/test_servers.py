"""The servers the tests start are real, empty and one test's own."""

import psycopg
import redis


def test_postgresql_answers_and_each_test_has_an_empty_database(postgresql_url: str) -> None:
    with psycopg.connect(postgresql_url) as connection:
        (tables,) = connection.execute("select count(*) from pg_tables where schemaname = 'public'").fetchone() or ()
        assert tables == 0
        connection.execute("create table left_behind (n int)")


def test_the_next_test_has_a_database_of_its_own(postgresql_url: str) -> None:
    test_postgresql_answers_and_each_test_has_an_empty_database(postgresql_url)


def test_redis_answers_and_starts_empty(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.keys() == []
        client.set("left", "behind")


def test_the_next_test_finds_redis_empty_again(redis_url: str) -> None:
    test_redis_answers_and_starts_empty(redis_url)
