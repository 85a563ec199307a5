// Problems of a rules file, with their positions. The response to an upload lists them.

/// One problem of a rules file.
public struct RulesProblem: Sendable, Hashable, CustomStringConvertible {
  /// The line, from 1.
  public let line: Int
  /// The column, from 1, in UTF-16 code units.
  public let column: Int
  /// The description.
  public let message: String

  /// Creates a problem at a position.
  public init(line: Int, column: Int, message: String) {
    self.line = line
    self.column = column
    self.message = message
  }

  /// `line:column: message`.
  public var description: String { "\(line):\(column): \(message)" }
}

/// The problems for which a rules file is rejected.
public struct RulesError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The problems, in the order of the text: at least one and at most ``RulesFile/maximumProblems``.
  public let problems: [RulesProblem]

  init(_ problems: [RulesProblem]) { self.problems = problems }

  /// One line for each problem, each with a line feed: the form of Firebase's response to an upload.
  public var description: String { problems.map { "\($0)\n" }.joined() }
}

/// Converts byte offsets, in any order, to lines and columns.
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
    let (line, column) = position(of: offset)
    return RulesProblem(line: line, column: column, message: message)
  }

  func position(of offset: Int) -> (line: Int, column: Int) {
    let offset = min(max(offset, 0), bytes.count)
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    let units = bytes[lineStarts[low]..<offset].reduce(0) { count, byte in
      // Continuation bytes do not count; four-byte characters are two UTF-16 code units.
      byte & 0xC0 == 0x80 ? count : count + (byte >= 0xF0 ? 2 : 1)
    }
    return (low + 1, units + 1)
  }
}
