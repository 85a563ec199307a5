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
      let live = try fragmentHeap()
      defer { for address in live { free(UnsafeMutableRawPointer(bitPattern: address)) } }
      let before = try residentBytes()
      await HeapTrimming.trim()
      let after = try residentBytes()
      #expect(before - after > 150 << 20, "resident before \(before), after \(after)")
    }

    @Test(
      "A busy process trims its heap when it uses more than half of its permitted memory",
      .timeLimit(.minutes(1)))
    func busyProcessTrims() async throws {
      let live = try fragmentHeap()
      defer { for address in live { free(UnsafeMutableRawPointer(bitPattern: address)) } }
      let before = try residentBytes()
      let trimming = Task { await HeapTrimming.run(memory: before) }
      defer { trimming.cancel() }
      // Polling keeps the process busy, so that it does not count as idle.
      while try before - residentBytes() < 150 << 20 { await Task.yield() }
    }

    @Test(
      "Memory pressure begins at half of the permitted memory; a trim raises this by a sixteenth of the memory"
    )
    func pressure() {
      var pressure = MemoryPressure(memory: 1600)
      #expect(!pressure.isHigh(resident: 800))
      #expect(pressure.isHigh(resident: 801))
      pressure.trimmed(to: 780)
      #expect(!pressure.isHigh(resident: 880))
      #expect(pressure.isHigh(resident: 881))
      pressure.trimmed(to: 100)
      #expect(!pressure.isHigh(resident: 800))
    }

    /// Fragments the heap: of 200 MiB, every 100th block of 1 KiB stays allocated, including the last one.
    /// - Returns: the addresses of the blocks that stay allocated.
    private func fragmentHeap() throws -> [UInt] {
      let block = 1 << 10
      var blocks: [UnsafeMutableRawPointer] = []
      for _ in 0..<200_000 {
        let pointer = try #require(malloc(block))
        memset(pointer, 1, block)
        blocks.append(pointer)
      }
      for (index, pointer) in blocks.enumerated() where index % 100 != 99 { free(pointer) }
      return blocks.enumerated().filter { $0.offset % 100 == 99 }.map { UInt(bitPattern: $0.element) }
    }
  }
#endif
