// Tests the simple hash with hashes that Firebase's clients computed. The iOS client has a variant: it lists
// children in key order if all of them have a priority.

import RealtimeModel
import Testing

@Suite("Simple hashes", .timeLimit(.minutes(10)))
struct SimpleHashTests {
  static let vectors: [(Node, String)] = [
    (.empty, ""),
    (.leaf(.bool(true)), "E5z61QM0lN/U2WsOnusszCTkR8M="),
    (.leaf(.bool(false)), "aSSNoqcS4oQwJ2xxH20rvpp3zP0="),
    (.leaf(.int(41)), "FKQEQrg9eSmOibuEATBfMSlup8g="),
    (.leaf(.double(41)), "FKQEQrg9eSmOibuEATBfMSlup8g="),
    (.leaf(.double(1.5)), "4MftviR9Z/2MQCMkjh2RNbvlLJc="),
    (.leaf(.string("tea")), "sgM9rtggZvDzOzQ3zFOOjD0osyM="),
    (.leaf(.string("hi"), priority: .number(5)), "uvUk1aLYMVYdNAJ6PwfsBuQv3SU="),
    (.object([("name", .leaf(.string("tea"))), ("stock", .leaf(.int(41)))]), "Wd9WHAEgYdDgRxO+qsMzasWv2DE="),
    (
      .object([
        ("a", .leaf(.double(1.5))), ("b", .leaf(.bool(true))), ("10", .leaf(.string("ten"))),
        ("2", .leaf(.string("two"))),
      ]), "U5eSWRxLFi0mc6Yub/028/Tc0NE="
    ),
    (
      .object([
        ("z", .leaf(.string("x"), priority: .number(1))), ("a", .leaf(.string("y"), priority: .number(2))),
      ]), "AItX0yC/f6HYkhPxqd7FigYZwm4="
    ),
    (.leaf(.string("żółć")), "rGRFwpy6qlZV+8eBPecjSsvpBOM="),
    (.leaf(.string("😀")), "MK8AFmo8GmKyFMO+8POk61hHbOQ="),
    (.leaf(.int(600613)), "ViJFJowpbyRvgGNPzPJdGeN+mCY="),
  ]

  @Test("Hashes equal those of Firebase's clients", arguments: vectors)
  func vector(node: Node, hash: String) {
    #expect(node.hash == hash)
    #expect(node.matches(hash: hash))
  }

  @Test("The iOS client's hash of an object whose children all have a priority is accepted")
  func iosVariant() {
    let node = Node.object([
      ("z", .leaf(.string("x"), priority: .number(1))), ("a", .leaf(.string("y"), priority: .number(2))),
    ])
    #expect(node.matches(hash: "CaTvE5RHLIo9iQ/rm9Eoh7LiaVY="))
    #expect(!node.setting("b", to: .leaf(.int(1))).matches(hash: "CaTvE5RHLIo9iQ/rm9Eoh7LiaVY="))
  }

  @Test("Both variants of a hash are compared only if they are cached or within the limit of hashed bytes")
  func boundedHashing() {
    let list = Node.object((0..<500).map { (ChildKey("k\($0)"), .leaf(.string("item number \($0)"))) })
    let node = Node.object([("a", list), ("b", .leaf(.int(1)))])
    let same = node.setting("b", to: .leaf(.int(2))).setting("b", to: .leaf(.int(1)))
    #expect(same.matches(hash: "other", hashingAtMost: 10_000) == nil)
    #expect(same.matches(hash: "other", hashingAtMost: 100_000) == false)
    // The comparison above cached the hash of the list, so little remains to be hashed.
    #expect(node.matches(hash: same.hash, hashingAtMost: 200) == true)
    #expect(node.setting("a/k1", to: .leaf(.int(1))).matches(hash: same.hash, hashingAtMost: 200) == nil)
    // Here the iOS client's variant of the hash can differ, and it is not cached.
    let both = node.setting("a/p/x", to: .leaf(.int(1), priority: .number(1)))
    let cachedHash = both.hash
    #expect(both.matches(hash: cachedHash, hashingAtMost: 0) == true)
    #expect(both.matches(hash: "other", hashingAtMost: 10_000) == nil)
    #expect(both.matches(hash: "other", hashingAtMost: 100_000) == false)
    // A leaf has no cached hash, so a long string exceeds the maximum each time.
    let text = Node.leaf(.string(String(repeating: "x", count: 1_000)))
    #expect(text.matches(hash: text.hash, hashingAtMost: 100) == nil)
  }

  @Test("A change below a node invalidates its cached hash")
  func cacheInvalidation() {
    var node = Node.empty
    for i in 0..<200 {
      node = node.setting(Path("list/k\(i)/v"), to: .leaf(.int(Int64(i))))
      _ = node.hash
    }
    let before = node.hash
    let changed = node.setting("list/k77/v", to: .leaf(.int(-1)))
    #expect(changed.hash != before)
    #expect(changed.setting("list/k77/v", to: .leaf(.int(77))).hash == before)
  }
}
