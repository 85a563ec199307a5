// Tests that heap trimming returns freed memory to the system.

#if canImport(Glibc)
  import Foundation
  import Glibc
  import Testing

  @testable import HearthServer

  @Suite("Heap trimming")
  struct HeapTrimmingTests {
    private func residentBytes() throws -> Int {
      let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
      let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") })
      return try #require(line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) }) * 1024
    }

    @Test("Trimming returns freed memory between live allocations to the system")
    func freeMemoryReturns() async throws {
      let block = 1 << 10
      var blocks: [UnsafeMutableRawPointer] = []
      for _ in 0..<200_000 {
        let pointer = try #require(malloc(block))
        memset(pointer, 1, block)
        blocks.append(pointer)
      }
      // Every 100th block stays allocated, including the last block. The memory between them is free.
      for (index, pointer) in blocks.enumerated() where index % 100 != 99 { free(pointer) }
      let before = try residentBytes()
      await HeapTrimming.trim()
      let after = try residentBytes()
      for (index, pointer) in blocks.enumerated() where index % 100 == 99 { free(pointer) }
      #expect(before - after > 150 << 20, "resident before \(before), after \(after)")
    }
  }
#endif
