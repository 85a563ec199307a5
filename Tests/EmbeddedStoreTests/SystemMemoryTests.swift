// Tests which memory limit of a process's control groups applies.

import Testing

@testable import EmbeddedStore

@Suite("Memory limits of control groups")
struct SystemMemoryTests {
  private func limit(_ files: [String: String]) -> Int? { SystemMemory.controlGroupLimit { files[$0] } }

  @Test("In version 2 of control groups, the lowest limit of a process's group and its ancestors applies")
  func nested() {
    var files = [
      "/proc/self/cgroup": "0::/system.slice/hearth.service\n",
      "/sys/fs/cgroup/system.slice/hearth.service/memory.max": "1073741824\n",
      "/sys/fs/cgroup/system.slice/memory.max": "max\n",
    ]
    #expect(limit(files) == 1 << 30)
    files["/sys/fs/cgroup/system.slice/memory.max"] = "536870912\n"
    #expect(limit(files) == 512 << 20)
    // The kernel slows a process down that exceeds `memory.high`.
    files["/sys/fs/cgroup/system.slice/hearth.service/memory.high"] = "268435456\n"
    #expect(limit(files) == 256 << 20)
  }

  @Test("The limit of a container's root group applies, also if the host's path is shown")
  func container() {
    #expect(limit(["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "4096\n"]) == 4096)
    #expect(limit(["/proc/self/cgroup": "0::/docker/abc\n", "/sys/fs/cgroup/memory.max": "4096\n"]) == 4096)
    #expect(limit(["/sys/fs/cgroup/memory.max": "4096\n"]) == 4096)
  }

  @Test("In version 1 of control groups, the limit comes from the hierarchy of the memory controller")
  func versionOne() {
    let files = [
      "/proc/self/cgroup": "12:cpu,cpuacct:/a\n4:memory:/user.slice/a:b\n",
      "/sys/fs/cgroup/memory/user.slice/a:b/memory.limit_in_bytes": "8192\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    ]
    #expect(limit(files) == 8192)
  }

  @Test("A process without control groups or limits has no memory limit")
  func unlimited() {
    #expect(limit([:]) == nil)
    #expect(limit(["/proc/self/cgroup": "0::/\nnonsense\n", "/sys/fs/cgroup/memory.max": "max\n"]) == nil)
  }
}
