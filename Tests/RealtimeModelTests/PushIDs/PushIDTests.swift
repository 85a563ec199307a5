// Push ids: their time part, their order, and what happens within one millisecond.

import RealtimeModel
import Testing

@Suite("Push ids", .timeLimit(.minutes(1)))
struct PushIDTests {
  @Test(
    "The first eight characters are the time",
    arguments: [
      (1_700_000_000_000, "-NjEtLV-"), (1_735_689_600_000, "-OFU9Mk-"),
    ])
  func time(milliseconds: Int64, prefix: String) {
    var generator = PushIDGenerator()
    let id = generator.next(at: milliseconds)
    #expect(id.hasPrefix(prefix))
    #expect(id.utf8.count == 20)
  }

  @Test("Ids of one millisecond ascend without repeating")
  func ascending() {
    var generator = PushIDGenerator()
    var random = SplitMix(seed: 3)
    var last: Key = .minimum
    for i in 0..<20_000 {
      let id = Key(generator.next(at: 1_700_000_000_000 + Int64(i / 5_000), using: &random))
      #expect(last < id)
      last = id
    }
  }

  @Test("A generator whose random part is at its highest draws anew")
  func overflow() {
    struct Ones: RandomNumberGenerator { mutating func next() -> UInt64 { .max } }
    var generator = PushIDGenerator()
    var ones = Ones()
    let first = generator.next(at: 5, using: &ones)
    #expect(first.hasSuffix("zzzzzzzzzzzz"))
    #expect(generator.next(at: 5, using: &ones).utf8.count == 20)
  }
}
