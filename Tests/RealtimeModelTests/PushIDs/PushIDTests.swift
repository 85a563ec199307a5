// Tests push ids: the encoded time, their order, and several ids in the same millisecond.

import RandomModels
import RealtimeModel
import Testing

@Suite("Push ids", .timeLimit(.minutes(10)))
struct PushIDTests {
  @Test(
    "The first eight characters encode the time",
    arguments: [
      (1_700_000_000_000, "-NjEtLV-"), (1_735_689_600_000, "-OFU9Mk-"),
    ])
  func time(milliseconds: Int64, prefix: String) {
    var generator = PushIDGenerator()
    let id = generator.next(at: milliseconds)
    #expect(id.hasPrefix(prefix))
    #expect(id.utf8.count == 20)
  }

  @Test("Ids that are generated in the same millisecond ascend")
  func ascending() {
    var generator = PushIDGenerator()
    var random = SeededGenerator(seed: 3)
    var last: ChildKey = .minimum
    for i in 0..<20_000 {
      let id = ChildKey(generator.next(at: 1_700_000_000_000 + Int64(i / 5_000), using: &random))
      #expect(last < id)
      last = id
    }
  }

  @Test("A generator draws new random bits when incrementing the random part overflows")
  func overflow() {
    struct Ones: RandomNumberGenerator { mutating func next() -> UInt64 { .max } }
    var generator = PushIDGenerator()
    var ones = Ones()
    let first = generator.next(at: 5, using: &ones)
    #expect(first.hasSuffix("zzzzzzzzzzzz"))
    #expect(generator.next(at: 5, using: &ones).utf8.count == 20)
  }

  @Test("Ids of two generators never collide and sort by time")
  func collisions() {
    var generators = [PushIDGenerator(), PushIDGenerator()]
    var random = SeededGenerator(seed: 9)
    var seen = Set<String>()
    var byTime: [(time: Int64, id: ChildKey)] = []
    var time: Int64 = 1_700_000_000_000
    for _ in 0..<40_000 {
      if random.below(4) == 0 { time += Int64(random.below(3)) }
      let id = generators[random.below(2)].next(at: time)
      #expect(seen.insert(id).inserted)
      byTime.append((time, ChildKey(id)))
    }
    for (a, b) in zip(byTime, byTime.dropFirst()) where a.time < b.time { #expect(a.id < b.id) }
  }
}
