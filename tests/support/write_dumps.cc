// Writes the Flight Recorder dumps of a job into a folder: inquest_write_dumps SCENARIO FOLDER [pickle|json].
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/recorded_job.h"

int main(int argc, char** argv) {
  const auto dumps = argc < 3 ? std::map<int, inquest::FlightDump>() : inquest::RecordedScenario(argv[1]);
  if (dumps.empty()) {
    std::fputs("inquest_write_dumps SCENARIO FOLDER [pickle|json]; scenarios: healthy-RANKS-ENTRIES", stderr);
    for (const std::string& name : inquest::RecordedScenarios()) std::fprintf(stderr, " %s", name.c_str());
    std::fputs("\n", stderr);
    return 3;
  }
  const bool json = argc > 3 && std::string(argv[3]) == "json";
  for (const auto& [rank, dump] : dumps) {
    std::ofstream file(std::string(argv[2]) + "/nccl_trace_rank_" + std::to_string(rank) + (json ? ".json" : ""),
                       std::ios::binary);
    file << (json ? inquest::JsonOf(dump) : inquest::PickleOf(dump));
    if (!file.flush()) {
      std::perror(argv[2]);
      return 3;
    }
  }
  return 0;
}
