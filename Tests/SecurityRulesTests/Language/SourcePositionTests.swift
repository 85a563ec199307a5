// Tests the order of positions in a rules file.

import SecurityRules
import Testing

@Suite struct SourcePositionTests {
  @Test("a position on an earlier line comes first, regardless of its column")
  func earlierLineComesFirst() {
    #expect(SourcePosition(line: 1, column: 9) < SourcePosition(line: 2, column: 1))
    #expect(SourcePosition(line: 2, column: 1) < SourcePosition(line: 2, column: 2))
  }
}
