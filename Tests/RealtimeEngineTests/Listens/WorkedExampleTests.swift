// The protocol's tricky behaviours, message by message, as the engine tells them.

import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Worked examples of the protocol")
struct WorkedExampleTests {
  private func open() async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: MemoryStore(), policy: EmulatorPolicy()).database("demo")
  }

  @Test("A write's own push comes before its acknowledgement")
  func ownPushFirst() async throws {
    let client = Client(try await open())
    _ = await client.set("shop/tea/stock", 41)
    await client.ask { $0.listen("shop", hash: "", request: $1) }
    #expect(await client.drain() == ["1 ok", "d shop {tea:{stock:41}}", "2 ok"])
    _ = await client.set("shop/tea/stock", 42)
    #expect(await client.drain() == ["d shop/tea/stock 42", "3 ok"])
  }
}
