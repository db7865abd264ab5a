# The Debian package: `cpack -G DEB` in a build folder, as scripts/package does. What it depends on is asked of the binaries.
set(CPACK_PACKAGE_NAME inquest)
set(CPACK_PACKAGE_CONTACT "inquest maintainers <maintainers@users.noreply.a-seed-4f31ab9f.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "says why a multi-GPU job died, from its logs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "inquest reads what a failed multi-GPU job left behind and names the first cause,
the rank and host to blame and the operation that hung, and quotes the lines that
prove it. It knows NCCL, PyTorch, the usual launchers, CUDA and driver messages,
and whatever nvidia-smi prints. It can run the failed operation again.")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
include(CPack)
