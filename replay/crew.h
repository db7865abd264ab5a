// The agents of the other nodes, as the coordinator has them: who came, who did not, and a Node for each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/node.h"

namespace inquest {

struct CrewSetup {
  int count = 2;           ///< nodes, the coordinator's included
  std::uint16_t port = 0;  ///< 0: a free one
  std::string token;
  std::string host;                     ///< what to call this one
  std::string version;                  ///< of inquest
  std::vector<std::string> names = {};  ///< of the nodes where they are known beforehand, by index; may be shorter
  std::function<bool()> interrupted = {};
  /// Why waiting for the others has become pointless (the ssh to one of them ended); empty: it has not.
  std::function<std::string()> hopeless = {};
};

/// One node as it presented itself. The coordinator's is the first.
struct CrewMember {
  std::string host, net = {};
  std::string address = {};  ///< by which the others can reach it
  std::optional<int> local_rank = {};
  std::string version = {};  ///< of inquest
};

class Crew {
 public:
  /// Listens from now on.
  static Result<Crew> Listen(CrewSetup setup);
  Crew(Crew&&) noexcept;
  Crew& operator=(Crew&&) = delete;
  ~Crew();  ///< agents that were not told farewell end by themselves

  std::uint16_t port() const;
  /// Until all are there. Fails with the names of those who are not, or where one is of another version; the others are
  /// told.
  std::optional<Error> Join(std::chrono::milliseconds limit);
  /// After Join: the coordinator's first.
  const std::vector<CrewMember>& members() const;
  /// After Join, by index; `own` is the first.
  std::vector<Node*> Nodes(Node* own) const;
  /// What each node has of an engine, by index; `own` is the coordinator's, nullopt where it has no ranks. Fails where
  /// one lacks it, or has another version than the first.
  Result<std::vector<EngineProbe>> Probe(const std::string& engine, const std::map<std::string, std::string>& options,
                                         const std::optional<EngineProbe>& own);
  void Farewell(int status, const std::string& complaint);

 private:
  struct State;
  explicit Crew(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace inquest
