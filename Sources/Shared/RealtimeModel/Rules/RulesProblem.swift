// What is wrong with a rules file, and where: the lines that an upload is answered with.

/// One thing that is wrong with a rules file.
public struct RulesProblem: Sendable, Hashable, CustomStringConvertible {
  /// The line, from 1.
  public let line: Int
  /// The column, from 1, in UTF-16 code units.
  public let column: Int
  /// What is wrong.
  public let message: String

  /// Says what is wrong at a place.
  public init(line: Int, column: Int, message: String) {
    self.line = line
    self.column = column
    self.message = message
  }

  /// `line:column: message`.
  public var description: String { "\(line):\(column): \(message)" }
}

/// Says why a text is no rules file.
public struct RulesError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong, in the order of the text; never empty, and no more than ``RulesFile/mostProblems``.
  public let problems: [RulesProblem]

  init(_ problems: [RulesProblem]) { self.problems = problems }

  /// One line for each problem, each with its line feed: the form in which the product answers an upload.
  public var description: String { problems.map { "\($0)\n" }.joined() }
}

/// Finds lines and columns of byte offsets that come in any order.
struct RulesPositions {
  private let bytes: [UInt8]
  private let lineStarts: [Int]

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var starts = [0]
    for (offset, byte) in bytes.enumerated() where byte == 0x0A { starts.append(offset + 1) }
    lineStarts = starts
  }

  func problem(at offset: Int, _ message: String) -> RulesProblem {
    let offset = min(max(offset, 0), bytes.count)
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    let units = bytes[lineStarts[low]..<offset].reduce(0) { count, byte in
      // Continuation bytes belong to the character before; four-byte characters are two UTF-16 code units.
      byte & 0xC0 == 0x80 ? count : count + (byte >= 0xF0 ? 2 : 1)
    }
    return RulesProblem(line: low + 1, column: units + 1, message: message)
  }
}
