"""The usual design, for comparison in collecting.py: FastAPI, one ORM session and one commit for each answer."""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from sqlalchemy import JSON, Integer, String, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Answer(Base):
    __tablename__ = "answers"
    session: Mapped[str] = mapped_column(String(64), primary_key=True)
    seq: Mapped[int] = mapped_column(Integer, primary_key=True)
    data: Mapped[dict[str, Any]] = mapped_column(JSON)


def main(path: str, port: int) -> None:
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def _durable(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA busy_timeout=30000")

    Base.metadata.create_all(engine)
    app = FastAPI()

    @app.post("/records")
    def records(body: dict[str, list[dict[str, Any]]], request: Request) -> dict[str, list[int]]:
        token = request.headers["authorization"]
        with Session(engine) as session:
            for record in body["records"]:
                session.merge(Answer(session=token, seq=record["seq"], data=record))
            session.commit()
        return {"stored": [record["seq"] for record in body["records"]]}

    uvicorn.run(app, port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
