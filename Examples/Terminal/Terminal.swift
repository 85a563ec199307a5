// The terminal of an example program: reads and writes lines. Reading blocks, so it uses a dedicated thread.

import Foundation

/// The terminal of an example program.
package enum Terminal {
  /// Prints a line without buffering, even if the output is a pipe.
  package static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }

  /// The lines that the user types, until the end of the input.
  package static func lines() -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }
}
