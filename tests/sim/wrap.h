/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of the C library that the linker redirects (--wrap), and their originals. */
#ifndef TESTS_SIM_WRAP_H
#define TESTS_SIM_WRAP_H

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

#include "daemon/util/log-entry.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
int __real_close(int fd);
ssize_t __real_read(int fd, void *data, size_t len);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
ssize_t __real_recv(int fd, void *data, size_t len, int flags);
int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
ssize_t __real_write(int fd, const void *data, size_t len);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
int __wrap_malloc_trim(size_t pad);
int __wrap_madvise(void *addr, size_t len, int advice);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *data), void *data);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_sem_wait(sem_t *sem);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);

void __real_log_write(enum log_level level, const struct log_about *about,
		      const char *format, ...);
void __real_log_client(const struct log_about *about, const char *format, ...);
void __wrap_log_write(enum log_level level, const struct log_about *about,
		      const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void __wrap_log_client(const struct log_about *about, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct journal_directory;
int __wrap_journal_directory_open(struct journal_directory *directory,
				  const char *path);
void __wrap_journal_directory_close(struct journal_directory *directory);
struct commit_way;
bool __wrap_commit_way_is_linked(struct commit_way *way);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *data, size_t len);
int __wrap_clock_gettime(clockid_t clock_id, struct timespec *ts);
ssize_t __wrap_getrandom(void *data, size_t len, unsigned int flags);
int __wrap_close(int fd);
ssize_t __wrap_recv(int fd, void *data, size_t len, int flags);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_shutdown(int fd, int how);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len);
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2]);
int __wrap_eventfd(unsigned int count, int flags);
int __wrap_signalfd(int fd, const sigset_t *mask, int flags);
int __wrap_timerfd_create(int clock_id, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
			   struct itimerspec *old);
int __wrap_sd_listen_fds_with_names(int unset, char ***names);
int __wrap_sd_is_socket(int fd, int family, int type, int listening);
int __wrap_sd_watchdog_enabled(int unset, uint64_t *us);
int __wrap_fstat(int fd, struct stat *st);

#endif /* TESTS_SIM_WRAP_H */
